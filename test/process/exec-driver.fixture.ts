import { execFileSync } from 'node:child_process';
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { temporaryFolder } from '../support/processes/process.ts';
import { quickReconcile, writeTimes } from '../support/processes/quick-times.ts';

/** A file of examples/drivers/. */
export const driverFile = (path: string) =>
  fileURLToPath(new URL(`../../examples/drivers/${path}`, import.meta.url));
export const template = driverFile('python/driver.py');
export const full = driverFile('python/full_driver.py');
export const UNITS = 3;
const CATALOG = `
regions:
  local:
    name: This machine
    datacenter: local-1
    volume_types: [{ name: folder, price_per_gb_hour: 0.0001, min_size_gb: 1, max_size_gb: 10 }]
offers:
  - id: sshd-1x
    name: An OpenSSH server
    instance_type: DEDICATED
    vcpus: 1
    memory_gb: 1
    storage_gb: 10
    price_per_hour: 0.01
    os_options: [debian-12]
    supports_cloud_init: false
    capacity: { local: ${UNITS} }
    machine: { flavour: tiny }
`;

/** Stands between the pipe and the template, and does what the file `mode` says with the next request. */
const CHAOS = `import os, runpy, sys, time
sys.path.insert(0, os.path.dirname(sys.argv[2]))
place, sys.argv, real = sys.argv[1], sys.argv[2:], sys.stdin
class Lines:
    def __iter__(self):
        for line in iter(real.readline, ''):
            mode = open(place).read()
            if mode == 'die': os._exit(9)
            if mode == 'hang': time.sleep(600)
            if mode == 'garbage': print('Traceback (most recent call last):', flush=True)
            yield line
sys.stdin = Lines()
runpy.run_path(sys.argv[0], run_name='__main__')
`;

export interface Site extends Disposable {
  folder: string;
  machines: string;
  config: string;
  mode(mode: 'well' | 'die' | 'hang' | 'garbage'): void;
  /** The folders and the servers of the machines. */
  found(): { machines: string[]; servers: number };
}

export function newSite(given: { driver?: string; file?: string; program?: string[] } = {}): Site {
  const { driver = '', file = template, program = ['python3', '@chaos', '@mode', file] } = given;
  const root = temporaryFolder();
  const at = (name: string): string => join(root.path, name);
  const machines = at('machines');
  const places: Record<string, string> = { '@chaos': at('chaos.py'), '@mode': at('mode') };
  const command = [...program.map((part) => places[part] ?? part), machines, String(UNITS)];
  writeFileSync(at('chaos.py'), CHAOS);
  writeFileSync(at('mode'), 'well');
  writeFileSync(at('catalog.yaml'), CATALOG);
  writeFileSync(
    at('berth.yaml'),
    `platform: { driver: exec, command: ${JSON.stringify(command)}${driver} }
catalog: catalog.yaml
rate_limits: false
database: sqlite:berth.db
`,
  );
  writeTimes(at('berth.yaml'), { reconcile: quickReconcile });
  return {
    folder: root.path,
    machines,
    config: at('berth.yaml'),
    mode: (mode) => writeFileSync(at('mode'), mode),
    found: () => ({
      machines: readdirSync(machines).filter((name) => !name.startsWith('.')),
      servers: serversOf(machines).length,
    }),
    [Symbol.dispose]() {
      for (const pid of serversOf(machines)) process.kill(pid, 'SIGKILL');
      root[Symbol.dispose]();
    },
  };
}

/** Process ids of the OpenSSH servers below a folder, without what they have just forked for a connection. */
function serversOf(folder: string): number[] {
  const lines = execFileSync('ps', ['-eo', 'pid=,ppid=,args='], { encoding: 'utf8' }).split('\n');
  const found = lines
    .filter((line) => line.includes(`-f ${folder}/`))
    .map((line) => line.trim().split(/\s+/).slice(0, 2).map(Number) as [pid: number, parent: number]);
  const pids = found.map(([pid]) => pid);
  return found.filter(([, parent]) => !pids.includes(parent)).map(([pid]) => pid);
}
