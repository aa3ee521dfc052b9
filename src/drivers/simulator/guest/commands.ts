import { createHash } from 'node:crypto';
import { FileError, type Guest, type GuestFacts } from './guest.ts';

const MAX_SLEEP_S = 3_600;
const CLOUD_INIT_POLL_MS = 250;
const KERNEL = '6.8.0-45-generic';

export interface Streams {
  /** The whole standard input, once it has ended. */
  stdin(): Promise<string>;
  out(text: string): void;
  err(text: string): void;
  /** Resolves when the reader has taken the output, or is gone. */
  drained(): Promise<void>;
}

interface CommandCall extends Omit<Streams, 'drained'> {
  name: string;
  args: string[];
  /** The user that it runs as. */
  user: string;
  shell: {
    workingDirectory: string;
    /** Exit status of the previous command. */
    readonly lastStatus: number;
    /** Set by `exit`. */
    hasExited: boolean;
    /** `path` as an absolute path of the guest. */
    resolve(path: string): string;
  };
  guest: Guest;
  /** Aborts when the command is interrupted. */
  signal: AbortSignal;
}

/** Returns the exit status; nothing is 0. */
// biome-ignore lint/suspicious/noConfusingVoidType: most commands return nothing
type Command = (call: CommandCall) => number | void | Promise<number>;

/** Does `work` for each path. A failure is reported as coreutils does, and the other paths are still processed. */
function eachPath(work: (call: CommandCall, path: string) => void): Command {
  return (call) => {
    let status = 0;
    for (const arg of call.args.filter((one) => !one.startsWith('-'))) {
      try {
        work(call, call.shell.resolve(arg));
      } catch (error) {
        if (!(error instanceof FileError)) throw error;
        call.err(`${call.name}: ${arg}: ${error.message}\n`);
        status = 1;
      }
    }
    return status;
  };
}

const textOf = ({ guest }: CommandCall, path: string): string =>
  kernelFiles[path]?.(guest.facts()) ?? guest.files.read(path).content;

const printEach = eachPath((call, path) => call.out(textOf(call, path)));

/** tail(1), with `-c` only. */
const printEnd: Command = (call) => {
  const [option, bytes, ...args] = call.args;
  if (option !== '-c') return 1;
  const cut = (text: string) => Buffer.from(text).subarray(-Number(bytes)).toString();
  return eachPath((of, path) => of.out(cut(textOf(of, path))))({ ...call, args });
};

const kernelFiles: Readonly<Record<string, (facts: GuestFacts) => string>> = {
  '/proc/meminfo': ({ spec }) => `MemTotal: ${toKib(spec.memoryGb)} kB\n`,
  '/proc/mounts': (facts) =>
    disksOf(facts)
      .map(({ name, path }) => `/dev/${name} ${path} ext4 rw 0 0\n`)
      .join(''),
};

const toKib = (gb: number): number => Math.floor((gb * 1e9) / 1024);

const countBytes = eachPath(({ guest, out }, path) =>
  out(`${Buffer.byteLength(guest.files.read(path).content)} ${path}\n`),
);

const listEach = eachPath(({ guest, out }, path) => {
  const names = guest.files.list(path)?.filter((name) => !name.startsWith('.'));
  if (names === undefined) guest.files.read(path);
  for (const name of names ?? [path]) out(`${name}\n`);
});

/** stat(1): the format of its option `-c`, with `%n`, `%a`, `%U`, `%G` and `%s`. */
const stat: Command = (call) => {
  const isFormatted = call.args[0] === '-c';
  const format = (isFormatted ? call.args[1] : undefined) ?? '%n %a %U:%G %s';
  const args = isFormatted ? call.args.slice(2) : call.args;
  return eachPath(({ guest, out }, path) => {
    const { content, mode, user, group } = guest.files.read(path);
    const sizeBytes = Buffer.byteLength(content);
    const values = new Map<string, unknown>([
      ['%n', path],
      ['%a', mode.toString(8)],
      ['%U', user],
      ['%G', group],
      ['%s', sizeBytes],
    ]);
    for (const part of format.split(/(%\w)/)) out(String(values.get(part) ?? part));
    out('\n');
  })({ ...call, args });
};

/** Waits in the platform's time. Returns 130 when it is interrupted. */
function sleep({ guest, signal }: CommandCall, ms: number): Promise<number> {
  return new Promise((resolve) => {
    const interrupt = (): void => {
      timer.cancel();
      resolve(130);
    };
    const timer = guest.clock.setTimer(ms, () => {
      signal.removeEventListener('abort', interrupt);
      resolve(0);
    });
    if (signal.aborted) interrupt();
    else signal.addEventListener('abort', interrupt, { once: true });
  });
}

const cloudInit: Command = async (call) => {
  const { guest, args, out } = call;
  while (args.includes('--wait') && guest.facts().cloudInit === 'running')
    if ((await sleep(call, CLOUD_INIT_POLL_MS)) !== 0) return 130;
  out(`status: ${guest.facts().cloudInit}\n`);
  return 0;
};

const nvidiaSmi: Command = ({ guest, args, out, err }) => {
  const { gpuCount, gpuType = 'GPU', ref } = guest.facts().spec;
  if (gpuCount === 0) {
    err('bash: nvidia-smi: command not found\n');
    return 127;
  }
  const model = /nvidia/i.test(gpuType) ? gpuType : `NVIDIA ${gpuType}`;
  for (let index = 0; index < gpuCount; index++) {
    if (args[0]?.startsWith('--query-gpu=')) {
      out(`${model}, [N/A]\n`);
      continue;
    }
    const hex = createHash('sha256').update(`${ref}/${index}`).digest('hex');
    const uuid = hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12}).*$/, 'GPU-$1-$2-$3-$4-$5');
    out(`GPU ${index}: ${model} (UUID: ${uuid})\n`);
  }
  return 0;
};

function uptime({ facts, clock }: Guest): string {
  const minutes = Math.floor((clock.now() - facts().bootedAt) / 60_000);
  return ` up ${minutes} min,  1 user,  load average: 0.00, 0.00, 0.00`;
}

/** The root disk and the volumes. */
function disksOf({ spec, volumes }: GuestFacts): { name: string; sizeGb: number; path: string }[] {
  return [
    { sizeGb: spec.rootDiskGb, path: '/' },
    ...volumes.map(({ ref, sizeGb }) => ({ sizeGb, path: `/mnt/${ref}` })),
  ].map((disk, nth) => ({ ...disk, name: `vd${String.fromCharCode(97 + (nth % 26))}` }));
}

/** lsblk(8): device, size and mount point; with `-dbnro NAME,TYPE,SIZE` those columns, in bytes. */
function listDisks(facts: GuestFacts, { args }: CommandCall): string {
  return disksOf(facts)
    .map(({ name, sizeGb, path }) =>
      args.includes('-dbnro') ? `${name} disk ${sizeGb * 1e9}` : `${name}  ${sizeGb}G  disk  ${path}`,
    )
    .join('\n');
}

/** df(1), with `-Pk` as POSIX has it. */
function listFileSystems(facts: GuestFacts, call: CommandCall): string {
  if (!call.args.includes('-Pk')) return listDisks(facts, call);
  return disksOf(facts)
    .map(({ name, sizeGb, path }) => `/dev/${name} ${toKib(sizeGb)} 0 ${toKib(sizeGb)} 0% ${path}`)
    .join('\n');
}

const print =
  (make: (facts: GuestFacts, call: CommandCall) => string): Command =>
  (call) =>
    call.out(`${make(call.guest.facts(), call)}\n`);

/** For root only. */
const power =
  (act: (guest: Guest) => void): Command =>
  ({ user, guest, err, name }) => {
    if (user === 'root') return act(guest);
    err(`${name}: Interactive authentication required.\n`);
    return 1;
  };

export const commands: Record<string, Command> = {
  true: () => 0,
  false: () => 1,
  sync: () => 0,
  echo: ({ args, out }) => (args[0] === '-n' ? out(args.slice(1).join(' ')) : out(`${args.join(' ')}\n`)),
  pwd: ({ shell, out }) => out(`${shell.workingDirectory}\n`),
  cd: ({ args, shell, guest, err }) => {
    const path = shell.resolve(args[0] ?? '/home/ubuntu');
    if (guest.files.list(path) === undefined) {
      err(`bash: cd: ${args[0]}: No such file or directory\n`);
      return 1;
    }
    shell.workingDirectory = path;
    return 0;
  },
  exit: ({ args, shell }) => {
    shell.hasExited = true;
    return args[0] === undefined ? shell.lastStatus : Number.parseInt(args[0], 10) & 0xff;
  },
  sleep: (call) => {
    const seconds = Number(call.args[0]);
    if (seconds >= 0 && seconds <= MAX_SLEEP_S) return sleep(call, seconds * 1000);
    call.err(`sleep: expected a number of seconds, at most ${MAX_SLEEP_S}\n`);
    return 1;
  },
  cat: async (call) => (call.args.length > 0 ? printEach(call) : call.out(await call.stdin())) ?? 0,
  ls: (call) => listEach(call.args.some((arg) => !arg.startsWith('-')) ? call : { ...call, args: ['.'] }),
  rm: eachPath(({ guest }, path) => guest.files.remove(path)),
  stat,
  tail: printEnd,
  wc: countBytes,
  hostname: print(({ spec }) => spec.hostname),
  whoami: print((_, { user }) => user),
  id: print((_, { user }) =>
    user === 'root' ? 'uid=0(root) gid=0(root)' : `uid=1000(${user}) gid=1000(${user})`,
  ),
  uname: print(({ spec }, { args }) =>
    args.length === 0 ? 'Linux' : `Linux ${spec.hostname} ${KERNEL} x86_64`,
  ),
  uptime: print((_, { guest }) => uptime(guest)),
  nproc: print(({ spec }) => String(spec.vcpus)),
  free: print(({ spec }) => `       total\nMem:   ${spec.memoryGb}G`),
  df: print(listFileSystems),
  lsblk: print(listDisks),
  'nvidia-smi': nvidiaSmi,
  'cloud-init': cloudInit,
  poweroff: power((guest) => guest.powerOff()),
  reboot: power((guest) => guest.reboot()),
};
