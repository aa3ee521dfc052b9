import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readlinkSync } from 'node:fs';

/**
 * A network namespace with mounts of its own, inside those of the lab, and a line to it. It lasts as long as one process,
 * so nothing of it has a name that another could have.
 */
export interface Namespace {
  pid: number;
  /** Its address, as the lab reaches it. */
  address: string;
  /** The lab's own address on the line to it. */
  outside: string;
  /** A command as it would be run in there; its output. @throws if it fails */
  run(command: string, ...args: string[]): string;
  /** Arguments that start a program in there. */
  enter(...argv: string[]): [string, string[]];
  /** Ends every process that is in there. */
  close(): Promise<void>;
}

/** `index` from 1 to 200 tells namespaces apart that there are at the same time. */
export async function openNamespace(index: number): Promise<Namespace> {
  const child = spawn('unshare', ['--net', '--mount', '--', 'sh', '-c', 'echo ready; exec sleep infinity'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(child.stdout, 'data');
  const pid = pidOf(child);
  const [device, outside, inside] = [`lab${index}`, `10.77.${index}.1`, `10.77.${index}.2`];
  ip('link', 'add', device, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', String(pid));
  ip('addr', 'add', `${outside}/24`, 'dev', device);
  ip('link', 'set', device, 'up');
  const enter = (...argv: string[]): [string, string[]] => [
    'nsenter',
    ['--target', String(pid), '--net', '--mount', '--', ...argv],
  ];
  const run = (command: string, ...args: string[]): string => {
    const [program, argv] = enter(command, ...args);
    return execFileSync(program, argv, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  };
  run('ip', 'link', 'set', 'lo', 'up');
  run('ip', 'addr', 'add', `${inside}/24`, 'dev', 'eth0');
  run('ip', 'link', 'set', 'eth0', 'up');
  run('ip', 'route', 'add', 'default', 'via', outside);
  return {
    pid,
    address: inside,
    outside,
    run,
    enter,
    async close() {
      const ended = once(child, 'exit');
      // One may end by the end of another.
      spawnSync('kill', ['-KILL', ...processesBeside(pid).map(String)]);
      await ended;
    },
  };
}

/** All that are in its network, and it. */
function processesBeside(pid: number): number[] {
  const networkOf = (of: number): string | undefined => {
    try {
      return readlinkSync(`/proc/${of}/ns/net`);
    } catch {
      return undefined; // It has ended.
    }
  };
  const network = networkOf(pid);
  const all = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return all.map(Number).filter((each) => networkOf(each) === network);
}

function ip(...args: string[]): void {
  execFileSync('ip', args);
}

function pidOf({ pid }: ChildProcess): number {
  if (pid === undefined) throw new Error('unshare did not start');
  return pid;
}
