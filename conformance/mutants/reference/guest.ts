/** State that survives a stop. */
export interface Disk {
  /** OpenSSH PEM. */
  hostKey: string;
  /** Content by absolute path. */
  files: Map<string, string>;
  /** `mode:user:group` by absolute path, if it is not the default. */
  owners: Map<string, string>;
  /** Whether the system on it shows attached volumes. */
  showsVolumes: boolean;
  /** The words on its raw blocks. Absent: they cannot be read. */
  blocks?: Set<string>;
}

/** The sizes of a machine. */
export interface Hardware {
  cores: number;
  memoryGb: number;
  storageGb: number;
  /** Undefined: the image has no tool for GPUs. */
  gpuCount: number | undefined;
}

/** What a command runs on. */
export interface Machine extends Disk {
  hardware: Hardware;
  /** The sizes of the attached volumes. */
  volumesGb: readonly number[];
}

export interface Outcome {
  code: number;
  stdout?: string;
  stderr?: string;
}

const HOME = '/home/ubuntu/';
const GB = 1e9;

/** Runs commands with `;` between them, as the user `ubuntu` or as root. The outcome is that of the last one. */
export function runOn(machine: Machine, command: string, isRoot = false): Outcome {
  const commands = command.match(/(?:'[^']*'|; \}|[^;'])+/g) ?? [];
  const outcomes = commands.map((one) => runMarked(machine, one.trim(), isRoot));
  const join = (stream: 'stdout' | 'stderr') => outcomes.map((outcome) => outcome[stream] ?? '').join('');
  return { code: outcomes.at(-1)?.code ?? 0, stdout: join('stdout'), stderr: join('stderr') };
}

/** A command may be between `echo WORD && ` and ` && echo WORD`. */
function runMarked(machine: Machine, command: string, isRoot: boolean): Outcome {
  const [, begin, inner, end] = /^echo (\S+) && (.*) && echo (\S+)$/.exec(command) ?? [];
  if (inner === undefined) return runOne(machine, command, isRoot);
  const { stdout = '', ...outcome } = runOne(machine, inner, isRoot);
  return { ...outcome, stdout: `${begin}\n${stdout}${outcome.code === 0 ? `${end}\n` : ''}` };
}

type Run = (machine: Machine, words: readonly string[], isRoot: boolean) => Outcome;

const print = (stdout: string): Outcome => ({ code: 0, stdout });
const fail = (stderr: string, code = 1): Outcome => ({ code, stderr: `${stderr}\n` });

/** The commands that it knows, with what runs them. */
const commands: readonly (readonly [RegExp, Run])[] = [
  [/^(?:true|sync)$/, () => print('')],
  [/^false$/, () => fail('')],
  [/^echo (\S+)$/, (_, [word]) => print(`${word}\n`)],
  [/^echo (\S+) (>>?) (\S+)(?: && sync)?$/, write],
  [/^wc -c (\S+)$/, ofFile((content, path) => `${Buffer.byteLength(content)} ${path}\n`)],
  [
    /^stat -c %a:%U:%G (\S+)$/,
    ofFile((_content, path, { owners }) => `${owners.get(path) ?? '644:root:root'}\n`),
  ],
  [/^sudo -n sh -c '(.*)'$/, (machine, [command = '']) => runOn(machine, command, true)],
  [/^cat \/proc\/meminfo$/, ({ hardware }) => print(`MemTotal: ${kib(hardware.memoryGb)} kB\n`)],
  [/^cat (\S+)$/, ofFile((content) => content)],
  [/^nproc$/, ({ hardware }) => print(`${hardware.cores}\n`)],
  [/^df -Pk$/, ({ hardware }) => print(`/dev/vda1 ${kib(hardware.storageGb)} 2000000 1 9% /\n`)],
  [/^nvidia-smi --query-gpu=name,memory.total --format=csv,noheader$/, ({ hardware }) => gpus(hardware)],
  [/^lsblk -dbnro NAME,TYPE,SIZE$/, disks],
  [/^(?:sudo -n )?dd if=\/dev\/(\w+) of=\/dev\/null bs=4096 count=1$/, readBlock],
  [/^\{ .*dd if=\/dev\/(\w+) .*\| grep -oE '([^']+)' \| sort -u \| head -n 20; \} 3>&1$/, searchBlocks],
  [/^yes (\S+) \| head -c \d+ > (\S+) && sync$/, fill],
];

function runOne(machine: Machine, command: string, isRoot: boolean): Outcome {
  for (const [pattern, run] of commands) {
    const found = pattern.exec(command);
    if (found !== null) return run(machine, found.slice(1), isRoot);
  }
  return fail(`${command}: command not found`, 127);
}

function write(
  { files }: Machine,
  [word = '', sign, target = '']: readonly string[],
  isRoot: boolean,
): Outcome {
  const path = toPath(target);
  if (!isRoot && !path.startsWith(HOME)) return fail(`${path}: Permission denied`);
  const before = sign === '>>' ? (files.get(path) ?? '') : '';
  files.set(path, `${before}${unquote(word)}\n`);
  return print('');
}

function ofFile(show: (content: string, path: string, machine: Machine) => string): Run {
  return (machine, [source = '']) => {
    const path = toPath(source);
    const content = machine.files.get(path);
    return content === undefined
      ? fail(`${source}: No such file or directory`)
      : print(show(content, path, machine));
  };
}

/** In KiB, less what the kernel or the file system takes. */
const kib = (gb: number): number => Math.floor((gb * GB * 0.97) / 1024);

function gpus({ gpuCount }: Hardware): Outcome {
  if (gpuCount === undefined) return fail('nvidia-smi: command not found', 127);
  return print('NVIDIA L4, 23034 MiB\n'.repeat(gpuCount) || 'No devices were found\n');
}

const DISK = 'vda';
const DISK_BYTES = 40 * 1024 ** 3;

function disks({ volumesGb, showsVolumes }: Machine): Outcome {
  const shown = showsVolumes ? volumesGb : [];
  const volumes = shown.map((sizeGb, index) => `vd${'bcdefgh'[index]} disk ${sizeGb * GB}\n`);
  return print(`${DISK} disk ${DISK_BYTES}\n${volumes.join('')}`);
}

function readBlock({ blocks }: Machine, [disk]: readonly string[]): Outcome {
  return disk === DISK && blocks !== undefined ? print('') : fail(`${disk}: No such file`);
}

function searchBlocks({ blocks }: Machine, [disk, pattern = '']: readonly string[]): Outcome {
  if (disk !== DISK || blocks === undefined) return fail(`${disk}: No such file`);
  const found = [...blocks].flatMap((word) => word.match(new RegExp(pattern, 'g')) ?? []);
  const lines = [...new Set(found)].toSorted().slice(0, 20);
  return print([...lines, `${DISK_BYTES} bytes copied\n`].join('\n'));
}

function fill(machine: Machine, [word = '', target = '']: readonly string[], isRoot: boolean): Outcome {
  machine.blocks?.add(word);
  return write(machine, [word, '>', target], isRoot);
}

const unquote = (word: string): string => word.replace(/^(['"])(.*)\1$/, '$2');

function toPath(word: string): string {
  const path = unquote(word).replace(/^(~|\$HOME)\//, '');
  return path.startsWith('/') ? path : `${HOME}${path}`;
}
