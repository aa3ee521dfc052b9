import { execFile, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { createClient } from '../support/http/http-client.ts';
import { startServing, temporaryFolder, writeFastConfig } from '../support/processes/process.ts';

const run = promisify(execFile);
const hasCurl = spawnSync('curl', ['--version']).error === undefined;
const root = join(import.meta.dirname, '../..');

/** The commands of a page after `npm start`, up to `until`, each as a reader would paste it. */
function commandsOf(page: string, until: string): string[] {
  const [, rest = ''] = readFileSync(join(root, page), 'utf8').split(/^npm ci && npm start\b.*$/m);
  const [text = ''] = rest.split(until);
  const blocks = [...`\n\`\`\`\n${text}`.matchAll(/^```sh\n([\s\S]*?)^```/gm)].map(([, block = '']) => block);
  const commands: string[] = [];
  let open = '';
  for (const line of blocks.join('\n').split('\n')) {
    open += `${line}\n`;
    if (line.endsWith('\\') || open.replaceAll('\\"', '').split('"').length % 2 === 0) continue;
    if (line.trim() !== '') commands.push(open.trim());
    open = '';
  }
  return commands.filter((command) => !command.startsWith('#'));
}

/** What the instance has come to before the reader goes on. */
function awaitedAfter(command: string): string | undefined {
  if (command.startsWith('export ID=')) return 'ONLINE';
  if (command.includes('/stop')) return 'STOPPED';
  if (command.includes('/start')) return 'ONLINE';
  return command.includes('-X DELETE') ? 'GONE' : undefined;
}

/** Runs a command as in a terminal of the reader, and returns what it prints. A refused request is an error. */
async function paste(command: string, cwd: string, known: Record<string, string>): Promise<string> {
  const script = `curl() { command curl --fail-with-body "$@"; }\n${command.replace('<ssh_port>', '$PORT')}`;
  const env = { PATH: process.env['PATH'], HOME: cwd, ...known };
  return (await run('bash', ['-c', script], { cwd, env })).stdout;
}

describe.skipIf(!hasCurl)('every command of the walk-through of', () => {
  it.each([
    ['README.md', '## A machine of your own'],
    ['docs/tutorial.md', '## What next'],
  ])('%s works as it stands', async (page, until) => {
    using folder = temporaryFolder();
    await using berth = await startServing(['--config', writeFastConfig(folder.path)], { cwd: folder.path });
    const client = createClient(berth.baseUrl, berth.apiKey);
    const known: Record<string, string> = {};
    const done: string[] = [];
    for (const command of commandsOf(page, until)) {
      if (command.startsWith('export BASE='))
        Object.assign(known, { BASE: berth.baseUrl, KEY: berth.apiKey });
      else if (!command.startsWith('export ID=')) {
        const printed = await paste(command, folder.path, known);
        const [, id = known['ID'] ?? ''] = /"id":"(inst-[^"]+)"/.exec(printed) ?? [];
        known['ID'] = id;
        done.push(command.split(' ')[0] ?? '');
        if (command.startsWith('ssh ')) expect(printed).toMatch(/GPU 0/);
      }
      const awaited = awaitedAfter(command);
      if (awaited === undefined) continue;
      const instance = await client.waitFor(`/instances/${known['ID']}`, awaited);
      known['PORT'] = String(instance['ssh_port'] ?? '');
    }
    expect(done).toEqual(expect.arrayContaining(['ssh-keygen', 'curl', 'ssh']));
    expect(done.length).toBeGreaterThanOrEqual(5);
  });
});
