// SPDX-License-Identifier: MIT
//
// One third-party client, one session through the real shim; what it saw goes to standard output as JSON.
//
//	node drive.mjs CLIENT COMMAND ARGUMENT…
//
// CLIENT: sdk1, sdk2-legacy, sdk2-auto, sdk2-modern, ai-sdk. The working directory holds node_modules.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const require = createRequire(pathToFileURL(process.cwd() + '/').href);
const load = async (name) => import(pathToFileURL(require.resolve(name)).href);
const [client, command, ...args] = process.argv.slice(2);
const info = { name: 'drive', version: '1' };
const figure = 'import matplotlib.pyplot as plt; plt.plot([1, 2]); plt.show()';

// The same session for all: `call` runs a tool, `list` gives the tools' names.
async function session(call, list) {
	const seen = { tools: await list() };
	await call('execute', { code: 'answer = 6 * 7; print("HELLO")' });
	seen.value = await call('execute', { code: 'answer' });
	seen.error = await call('execute', { code: '1/0' });
	seen.figure = await call('execute', { code: figure });
	await call('execute', { code: 'def double(x: int) -> int:\n    return 2 * x' });
	seen.called = await call('call_function', { name: 'double', arguments: { x: 21 } });
	await call('register_tool', { name: 'double' });
	seen.grown = await list();
	seen.registered = await call('double', { x: 4 });
	await call('unregister_tool', { names: ['double'] });
	return seen;
}

async function sdk(version) {
	const old = version === 'sdk1';
	const base = old ? '@modelcontextprotocol/sdk/client' : '@modelcontextprotocol/client';
	const { Client } = await load(old ? base + '/index.js' : base);
	const { StdioClientTransport } = await load(old ? base + '/stdio.js' : base + '/stdio');
	const mode = { 'sdk2-auto': { mode: 'auto' }, 'sdk2-modern': { mode: { pin: '2026-07-28' } } }[version];
	const c = new Client(info, { capabilities: {}, ...(mode ? { versionNegotiation: mode } : {}) });
	// Only what a test names explicitly may reach the server: the clients pass little on.
	const env = { ...Object.fromEntries(Object.entries(process.env).filter(([k]) => k.startsWith('IPYTHON_MCP_'))),
		PATH: process.env.PATH, HOME: process.env.HOME };
	await c.connect(new StdioClientTransport({ command, args, env, stderr: 'inherit' }));
	const seen = await session((name, a) => c.callTool({ name, arguments: a }),
		async () => (await c.listTools()).tools.map((t) => t.name));
	if (!old)
		seen.revision = c.getNegotiatedProtocolVersion();
	// The SDK validates structured content against the output schemas it has listed.
	seen.listed = await c.callTool({ name: 'list', arguments: {} });
	await c.close();
	return seen;
}

async function aiSdk() {
	const { createMCPClient } = await load('@ai-sdk/mcp');
	const { Experimental_StdioMCPTransport: Transport } = await load('@ai-sdk/mcp/mcp-stdio');
	const env = { ...process.env };
	const c = await createMCPClient({ transport: new Transport({ command, args, env }) });
	let n = 0;
	const seen = await session(
		async (name, a) => (await c.tools())[name].execute(a, { toolCallId: String(n++), messages: [] }),
		async () => Object.keys(await c.tools()));
	await c.close();
	return seen;
}

const seen = client === 'ai-sdk' ? await aiSdk() : await sdk(client);
process.stdout.write(JSON.stringify(seen) + '\n');
process.exit(0);
