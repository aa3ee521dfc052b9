import { type Command, type CommandCall, FileError, type FileFacts } from './guest.ts';

/** Runs `work` for each path. A failure is reported as coreutils does, and the other paths are still processed. */
async function forEachPath(
  { name, err, signal }: CommandCall,
  paths: readonly string[],
  doing: string,
  work: (path: string) => Promise<void>,
): Promise<number> {
  let status = 0;
  for (const path of paths) {
    if (signal.aborted) return 130;
    try {
      await work(path);
    } catch (error) {
      if (!(error instanceof FileError)) throw error;
      err(`${name}: ${doing}${doing === '' ? path : `'${path}'`}: ${error.message}\n`);
      status = 1;
    }
  }
  return status;
}

const isOption = (arg: string): boolean => arg.startsWith('-') && arg !== '-';
const operands = (args: readonly string[]): string[] => args.filter((arg) => !isOption(arg));
const hasFlag = (args: readonly string[], flag: string): boolean =>
  args.some((arg) => isOption(arg) && !arg.startsWith('--') && arg.includes(flag));

function modeText({ kind, mode }: FileFacts): string {
  const bits = [...'rwxrwxrwx'].map((letter, index) => ((mode >> (8 - index)) & 1 ? letter : '-')).join('');
  const sticky = mode & 0o1000 ? bits.replace(/x$/, 't').replace(/-$/, 'T') : bits;
  return `${kind === 'directory' ? 'd' : '-'}${sticky}`;
}

function longLine(name: string, file: FileFacts): string {
  const date = new Date(file.modifiedAt).toISOString().slice(0, 16).replace('T', ' ');
  return `${modeText(file)} 1 ${file.user} ${file.group} ${String(file.sizeBytes).padStart(6)} ${date} ${name}\n`;
}

async function list(call: CommandCall): Promise<number> {
  const { args, shell, guest, out } = call;
  const isLong = hasFlag(args, 'l');
  const paths = operands(args);
  const show = (name: string, file: FileFacts): void => out(isLong ? longLine(name, file) : `${name}\n`);
  return forEachPath(call, paths.length === 0 ? ['.'] : paths, 'cannot access ', async (path) => {
    const absolute = shell.resolve(path);
    const file = await guest.files.stat(absolute);
    if (file === undefined) throw new FileError('No such file or directory');
    if (file.kind === 'file' || hasFlag(args, 'd')) return show(path, file);
    const isAll = hasFlag(args, 'a') || hasFlag(args, 'A');
    const entries = (await guest.files.list(absolute)).filter(({ name }) => isAll || !name.startsWith('.'));
    if (isLong) out(`total ${entries.length * 4}\n`);
    for (const entry of entries) show(entry.name, entry.file);
  });
}

async function concatenate(call: CommandCall): Promise<number> {
  const paths = operands(call.args);
  if (paths.length === 0) {
    call.out(await call.stdin());
    return 0;
  }
  return forEachPath(call, paths, '', async (path) =>
    call.out(await call.guest.files.read(call.shell.resolve(path), call.user)),
  );
}

async function stat(call: CommandCall): Promise<number> {
  const { args, shell, guest, out } = call;
  const at = args.findIndex((arg) => arg === '-c' || arg === '--format');
  const format = at === -1 ? '%n %A %U %G %s' : (args[at + 1] ?? '');
  const paths = operands(args.filter((_, index) => at === -1 || index !== at + 1));
  return forEachPath(call, paths, 'cannot statx ', async (path) => {
    const file = await guest.files.stat(shell.resolve(path));
    if (file === undefined) throw new FileError('No such file or directory');
    const values: Record<string, string | number> = {
      n: path,
      a: file.mode.toString(8),
      A: modeText(file),
      U: file.user,
      G: file.group,
      s: file.sizeBytes,
    };
    out(`${format.replace(/%(\w)/g, (whole, letter: string) => String(values[letter] ?? whole))}\n`);
  });
}

async function makeDirectories(call: CommandCall): Promise<number> {
  const { files } = call.guest;
  const makesParents = hasFlag(call.args, 'p');
  return forEachPath(call, operands(call.args), 'cannot create directory ', async (path) => {
    const parts = call.shell.resolve(path).split('/');
    for (let depth = makesParents ? 2 : parts.length; depth <= parts.length; depth++) {
      const directory = parts.slice(0, depth).join('/');
      if (makesParents && (await files.stat(directory))?.kind === 'directory') continue;
      await files.makeDirectory(directory, call.user);
    }
  });
}

async function remove(call: CommandCall): Promise<number> {
  const { files } = call.guest;
  return forEachPath(call, operands(call.args), 'cannot remove ', async (path) => {
    const absolute = call.shell.resolve(path);
    if (hasFlag(call.args, 'f') && (await files.stat(absolute)) === undefined) return;
    await files.remove(absolute, call.user);
  });
}

export const fileCommands: Record<string, Command> = {
  ls: list,
  cat: concatenate,
  stat,
  mkdir: makeDirectories,
  rm: remove,
  sync: () => 0,
};
