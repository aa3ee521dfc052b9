import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { startPostgres } from '../support/databases/postgres.ts';
import { startOtlpReceiver } from '../support/otlp-receiver.ts';
import { temporaryFolder } from '../support/processes/process.ts';
import { quickReconcile, type Times, writeTimes } from '../support/processes/quick-times.ts';
import { commandsOf, pages, readPage, shellBlocksOf } from './pages.ts';
import { Reader } from './reader.ts';

/** Commands that only a host of the reader's can take; what the pages promise of them is proved by these. */
const ELSEWHERE: readonly [RegExp, provedBy: string][] = [
  [
    /^npm (ci|pack|test)\b|^npm install |^install -D .*systemd|^systemctl enable|^ln -s \/opt/,
    'test/package, test/image',
  ],
  [
    /^(apt-get|virsh|install -D .*libvirt|systemctl restart libvirtd)\b|debian-12-genericcloud/,
    'test/lab/libvirt',
  ],
  [/examples\/libvirt\/berth.yaml/, 'test/lab/libvirt'],
  [/^(incus|fallocate) |-subj \/CN=berth/, 'test/lab/incus'],
  [/^openstack /, 'test/lab/openstack'],
  [/^docker run .* conformance monitor/, 'test/image'],
  [/^litestream /, 'a bucket of the reader'],
  [/examples\/foreign|^BERTH_API_KEY=secret/, 'test/process/foreign-orchestrators.openssh.long.test.ts'],
];
const isElsewhere = (command: string): boolean => ELSEWHERE.some(([pattern]) => pattern.test(command));

/** What a page's commands find there before the first, and what the reader learns from what each prints. */
interface Scene {
  prepare?: (reader: Reader) => Promise<void>;
  before?: (reader: Reader, command: string) => Promise<void>;
  /** Looks at what a command printed, and may have the reader know more for the next. */
  after?: (reader: Reader, command: string, printed: string) => Promise<void> | void;
  /** What the whole must have printed. */
  prints?: readonly RegExp[];
}

const TIMES: Times = {
  reconcile: quickReconcile,
  simulator: {
    bootMs: [20, 60],
    stopMs: [10, 30],
    startMs: [20, 60],
    destroyMs: [10, 30],
    volumeMs: [5, 20],
  },
  polling: { intervalMs: [1_000, 1_000] },
};

/** A server on the reader's `.berth/berth.db`, as the page takes it to run. */
async function serve(reader: Reader): Promise<Record<string, string>> {
  reader.append('berth.yaml', 'log_level: warn\ndatabase: sqlite:.berth/berth.db\n');
  writeTimes(join(reader.folder, 'berth.yaml'), TIMES);
  const ready = JSON.parse(await reader.paste('berth serve --config berth.yaml'));
  return { ...ready };
}

const firstMachine: Scene = {
  prepare: async (reader) => {
    const { api_key: key = '' } = await serve(reader);
    reader.know('KEY', key);
  },
  after: async (reader, command, printed) => {
    const [, id] = /"id": ?"(inst-[^"]+)"/.exec(printed) ?? [];
    if (id !== undefined) reader.know('ID', id);
    const awaited = statusAfter(command);
    if (awaited === undefined) return;
    const gone = awaited === 'GONE';
    const instance = 'curl -s -H "Authorization: Bearer $KEY" $BASE/instances/$ID';
    const seen = await reader.pasteUntil(
      gone ? `${instance} || true` : instance,
      gone ? /"not_found"/ : new RegExp(`"status": ?"${awaited}"`),
    );
    const [, port] = /"ssh_port": ?(\d+)/.exec(seen) ?? [];
    if (port !== undefined) reader.read('<ssh_port>', port);
  },
  prints: [/"status": ?"PROVISIONING"/, /GPU 0/, /berthop_/],
};

/** What the instance has come to before the reader goes on. */
function statusAfter(command: string): string | undefined {
  if (command.startsWith('export ID=')) return 'ONLINE';
  if (command.includes('/stop')) return 'STOPPED';
  if (command.includes('/start')) return 'ONLINE';
  return command.includes('-X DELETE') ? 'GONE' : undefined;
}

const scenes: Record<string, Scene> = {
  'README.md': {
    ...firstMachine,
    prepare: async (reader) => {
      const ready = await serve(reader);
      reader.know('KEY', ready['api_key'] ?? '');
      certify(reader, ready);
    },
    prints: [...(firstMachine.prints ?? []), /CONFORMANT/],
  },
  'docs/marketplace.md': {
    after: async (reader, command, printed) => {
      if (command.startsWith('cat > provider-d.yaml'))
        writeTimes(join(reader.folder, 'provider-d.yaml'), TIMES);
      if (command.startsWith('cat > marketplace.yaml'))
        writeTimes(join(reader.folder, 'marketplace.yaml'), TIMES);
      const [key] = /berth(?:op)?_\w+/.exec(printed) ?? [];
      if (key !== undefined) reader.know(command.includes('serve') ? 'PROVIDER_D_KEY' : 'KEY', key);
      const [, team] = /"slug":"([^"]+)"/.exec(printed) ?? [];
      if (team !== undefined && command.includes('/teams')) reader.know('TEAM', team);
      const [, id] = /"id":"(dep-[^"]+)"/.exec(printed) ?? [];
      if (id !== undefined) reader.know('ID', id);
      if (!/\/deployments( |$)/.test(command) || command.includes('-d ')) return;
      const running = await reader.pasteUntil(command, /"status":"running"/);
      const [, port = ''] = /"sshPort":(\d+)/.exec(running) ?? [];
      reader.read('<sshPort>', port);
    },
    prints: [/GPU 0/, /"status":"stopped"|paus/, /dep-/],
  },
  'docs/backup.md': {
    prepare: async (reader) => {
      await serve(reader);
      reader.read('/safe/place', reader.folder);
      const database = await reader.owns(await startPostgres()).createDatabase();
      reader.read('postgres://…', database);
      await reader.paste('berth serve --config berth.yaml --database postgres://…');
    },
    before: async (reader, command) => {
      if (command.includes('restore')) await reader.endServers();
    },
  },
  'docs/certification.md': {
    prepare: async (reader) => certify(reader, await serve(reader)),
    prints: [/CONFORMANT/, /as it must be/],
  },
  'docs/how-to/certify.md': {
    prepare: async (reader) => certify(reader, await serve(reader)),
    prints: [/CONFORMANT/],
  },
  'docs/how-to/driver-in-any-language.md': {
    prepare: async (reader) => {
      reader.read('/tmp/machines', join(reader.folder, 'machines'));
      reader.read(
        './my-driver --region eu',
        `examples/drivers/node/driver.mjs ${join(reader.folder, 'machines-of-mine')} 4`,
      );
    },
    prints: [/passed/],
  },
  'docs/how-to/monitor.md': {
    prepare: async (reader) => {
      const { base_url: base, api_key: key = '' } = await serve(reader);
      reader.know('FAST_MONITOR_KEY', key);
      reader.append(
        'monitor.yaml',
        `state: monitor
providers:
  - { name: fast, base_url: '${base}', api_key_env: FAST_MONITOR_KEY, budget_usd_per_day: 1, allow_private: true }
listen: 127.0.0.1:0
`,
      );
    },
    after: async (reader, _command, printed) => {
      const [port] = /\d+/.exec(printed) ?? [];
      const page = await fetch(`http://127.0.0.1:${port}/providers/fast.json`);
      expect(await page.json()).toMatchObject({ provider: 'fast', status: 'not enough' });
      await reader.endServers();
    },
  },
  'docs/how-to/operate.md': {
    prepare: async (reader) => void (await serve(reader)),
    after: (reader, command, printed) => {
      const [key] = /berth(?:op)?_\w+/.exec(printed) ?? [];
      if (command.includes('operators create')) reader.know('OPERATOR_KEY', key ?? '');
    },
    prints: [/"instances":/],
  },
  'docs/how-to/production.md': {
    prepare: async (reader) => {
      await serve(reader);
      await reader.endServers();
      reader.read('/var/lib/berth', join(reader.folder, '.berth'));
      reader.read('/etc/berth', join(reader.folder, 'etc'));
    },
    prints: [/berth(op)?_\w+/],
  },
  'docs/how-to/sandbox.md': {
    prepare: async (reader) => {
      const { base_url: base = '', api_key: key = '' } = await serve(reader);
      reader.read('https://gpu.example/v1', base);
      reader.know('KEY', key);
    },
    after: async (reader, command, printed) => {
      if (!command.includes('sandbox')) return;
      const { control, base_url: base, origin } = JSON.parse(printed);
      if (command.includes('--tls')) {
        reader.read('https://127.0.0.1:8099', origin);
        return;
      }
      if (control !== undefined) {
        reader.know('CONTROL', control.base_url);
        reader.know('CONTROL_KEY', control.api_key);
        return;
      }
      const offers = await reader.paste(`curl -s -H "Authorization: Bearer $KEY" ${base}/configurations`);
      expect(JSON.parse(offers).configurations).not.toEqual([]);
      // Ctrl-C writes the recording.
      await reader.endServers();
    },
    prints: [/http-500/],
  },
  'docs/operations/README.md': {
    prepare: async (reader) => {
      reader.read('http://127.0.0.1:4318', reader.owns(await startOtlpReceiver()).url);
      reader.append('berth.yaml', `log_level: warn\n`);
    },
  },
  'docs/simulator.md': {
    prepare: async (reader) => {
      reader.read('postgres://…', await reader.owns(await startPostgres()).createDatabase());
      reader.append('berth.yaml', 'log_level: warn\n');
    },
    after: (reader, command, printed) => {
      if (command.startsWith('berth simulator'))
        reader.append(
          'berth.yaml',
          `platform: { driver: simulator, address: '${JSON.parse(printed).base_url}' }\n`,
        );
    },
  },
};

/** A server that the suite judges in the page's commands. */
function certify(reader: Reader, { base_url: base = '', api_key: key = '' }: Record<string, string>): void {
  reader.know('BERTH_API_KEY', key);
  // The suite polls each ten seconds if nobody says otherwise.
  const target = 'https://orchestrator.example/v1';
  reader.read(target, base);
  for (const command of ['', 'doctor ', 'plan   ', '       '])
    reader.read(
      `berth conformance ${command}${target}`,
      `berth conformance ${command}${base} --poll-interval-ms 200 --allow-private`,
    );
}

describe.concurrent('the commands of', () => {
  it.each(pages.filter((page) => shellBlocksOf(readPage(page)).length > 0))(
    '%s work as they stand',
    async (page) => {
      const commands = shellBlocksOf(readPage(page))
        .flatMap(commandsOf)
        .filter((command) => !isElsewhere(command));
      const scene = scenes[page];
      if (commands.length === 0) return;
      expect(scene, `a scene for ${page}`).toBeDefined();
      using folder = temporaryFolder();
      await using reader = new Reader(folder.path);
      await scene?.prepare?.(reader);
      let all = '';
      for (const command of commands) {
        const printed = await reader.paste(command);
        all += printed;
        await scene?.after?.(reader, command, printed);
      }
      for (const pattern of scene?.prints ?? []) expect(all).toMatch(pattern);
    },
    // Two runs of the suite, each with the time in which it observes a machine.
    6 * 60_000,
  );
});
