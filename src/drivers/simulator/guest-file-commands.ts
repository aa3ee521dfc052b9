import type { Command, CommandCall } from './guest-commands.ts';
import { FileError } from './guest-files.ts';
import type { StoredFile } from './state.ts';

/** Runs `work` for each path; a path that fails is reported as coreutils does, and the rest go on. */
function forEachPath(
  { name, err }: CommandCall,
  paths: string[],
  doing: string,
  work: (path: string) => void,
): number {
  let status = 0;
  for (const path of paths) {
    try {
      work(path);
    } catch (error) {
      if (!(error instanceof FileError)) throw error;
      err(`${name}: ${doing}${doing === '' ? path : `'${path}'`}: ${error.message}\n`);
      status = 1;
    }
  }
  return status;
}

const isOption = (arg: string): boolean => arg.startsWith('-') && arg !== '-';
const operands = (args: string[]): string[] => args.filter((arg) => !isOption(arg));
const hasFlag = (args: string[], flag: string): boolean =>
  args.some((arg) => isOption(arg) && !arg.startsWith('--') && arg.includes(flag));

function modeText({ kind, mode }: StoredFile): string {
  const bits = [...'rwxrwxrwx'].map((letter, index) => ((mode >> (8 - index)) & 1 ? letter : '-')).join('');
  const sticky = mode & 0o1000 ? bits.replace(/x$/, 't').replace(/-$/, 'T') : bits;
  return `${kind === 'directory' ? 'd' : '-'}${sticky}`;
}

function longLine(name: string, file: StoredFile): string {
  const size = Buffer.byteLength(file.content);
  const date = new Date(file.modifiedAt).toISOString().slice(0, 16).replace('T', ' ');
  return `${modeText(file)} 1 ${file.user} ${file.group} ${String(size).padStart(6)} ${date} ${name}\n`;
}

function list(call: CommandCall): number {
  const { args, shell, guest, out } = call;
  const isLong = hasFlag(args, 'l');
  const paths = operands(args);
  const show = (name: string, path: string): void => {
    const file = guest.files.stat(path);
    if (file !== undefined) out(isLong ? longLine(name, file) : `${name}\n`);
  };
  return forEachPath(call, paths.length === 0 ? ['.'] : paths, 'cannot access ', (path) => {
    const absolute = shell.resolve(path);
    const file = guest.files.stat(absolute);
    if (file === undefined) throw new FileError('No such file or directory');
    if (file.kind === 'file' || hasFlag(args, 'd')) return show(path, absolute);
    const names = guest.files
      .list(absolute)
      .filter((name) => !name.startsWith('.') || hasFlag(args, 'a') || hasFlag(args, 'A'));
    if (isLong) out(`total ${names.length * 4}\n`);
    for (const name of names) show(name, `${absolute === '/' ? '' : absolute}/${name}`);
  });
}

async function concatenate(call: CommandCall): Promise<number> {
  const paths = operands(call.args);
  if (paths.length === 0 || paths.includes('-')) {
    call.out(await call.stdin());
    return 0;
  }
  return forEachPath(call, paths, '', (path) =>
    call.out(call.guest.files.read(call.shell.resolve(path), call.user)),
  );
}

function stat(call: CommandCall): number {
  const { args, shell, guest, out } = call;
  const at = args.findIndex((arg) => arg === '-c' || arg === '--format');
  const format = at === -1 ? '%n %A %U %G %s' : (args[at + 1] ?? '');
  const paths = operands(args).filter((path) => at === -1 || path !== args[at + 1]);
  return forEachPath(call, paths, 'cannot statx ', (path) => {
    const file = guest.files.stat(shell.resolve(path));
    if (file === undefined) throw new FileError('No such file or directory');
    const size = Buffer.byteLength(file.content);
    const values: Record<string, string | number> = {
      n: path,
      a: file.mode.toString(8),
      A: modeText(file),
      U: file.user,
      G: file.group,
      s: size,
    };
    out(`${format.replace(/%(\w)/g, (whole, letter: string) => String(values[letter] ?? whole))}\n`);
  });
}

/** `test EXPRESSION`, with one operator. */
function test({ args, name, shell, guest, err }: CommandCall): number {
  const words = name === '[' ? args.slice(0, -1) : args;
  const isNegated = words[0] === '!';
  const [a = '', b, c] = isNegated ? words.slice(1) : words;
  const file = b === undefined ? undefined : guest.files.stat(shell.resolve(b));
  const checks: Record<string, () => boolean> = {
    '-e': () => file !== undefined,
    '-f': () => file?.kind === 'file',
    '-d': () => file?.kind === 'directory',
    '-s': () => file !== undefined && file.content !== '',
    '-n': () => b !== undefined && b !== '',
    '-z': () => b === undefined || b === '',
    '=': () => a === c,
    '==': () => a === c,
    '!=': () => a !== c,
    '-eq': () => Number(a) === Number(c),
    '-ne': () => Number(a) !== Number(c),
    '-gt': () => Number(a) > Number(c),
    '-ge': () => Number(a) >= Number(c),
  };
  const check = b === undefined ? () => a !== '' : checks[c === undefined ? a : b];
  if (check === undefined) {
    err(`bash: ${name}: ${a}: unary operator expected\n`);
    return 2;
  }
  return check() === isNegated ? 1 : 0;
}

async function inputLines(call: CommandCall, paths: string[]): Promise<string[]> {
  const texts = paths.map((path) => call.guest.files.read(call.shell.resolve(path), call.user));
  const text = paths.length === 0 ? await call.stdin() : texts.join('');
  return text === '' ? [] : text.replace(/\n$/, '').split('\n');
}

/** Commands that read the standard input or files; a file that fails ends them. */
const filters: Record<string, (call: CommandCall) => Promise<number>> = {
  wc: async (call) => {
    const lines = await inputLines(call, operands(call.args));
    call.out(`${lines.length}\n`);
    return 0;
  },
  grep: async (call) => {
    const [pattern = '', ...paths] = operands(call.args);
    const wanted = hasFlag(call.args, 'i') ? pattern.toLowerCase() : pattern;
    const lines = await inputLines(call, paths);
    const found = lines.filter(
      (line) =>
        (hasFlag(call.args, 'i') ? line.toLowerCase() : line).includes(wanted) !== hasFlag(call.args, 'v'),
    );
    if (hasFlag(call.args, 'c')) call.out(`${found.length}\n`);
    else if (!hasFlag(call.args, 'q')) call.out(found.map((line) => `${line}\n`).join(''));
    return found.length > 0 ? 0 : 1;
  },
  tee: async (call) => {
    const text = await call.stdin();
    call.out(text);
    return forEachPath(call, operands(call.args), '', (path) => {
      const absolute = call.shell.resolve(path);
      const before =
        hasFlag(call.args, 'a') && call.guest.files.stat(absolute) !== undefined
          ? call.guest.files.read(absolute, call.user)
          : '';
      call.guest.files.write(absolute, before + text, call.user);
    });
  },
};

function failingAsCoreutils(command: (call: CommandCall) => Promise<number>): Command {
  return (call) =>
    command(call).catch((error: unknown) => {
      if (!(error instanceof FileError)) throw error;
      call.err(`${call.name}: ${error.message}\n`);
      return 2;
    });
}

export const fileCommands: Record<string, Command> = {
  ls: list,
  cat: concatenate,
  stat,
  test,
  '[': test,
  ...Object.fromEntries(
    Object.entries(filters).map(([name, command]) => [name, failingAsCoreutils(command)]),
  ),
  touch: (call) =>
    forEachPath(call, operands(call.args), 'cannot touch ', (path) => {
      const absolute = call.shell.resolve(path);
      const content =
        call.guest.files.stat(absolute) === undefined ? '' : call.guest.files.read(absolute, call.user);
      call.guest.files.write(absolute, content, call.user);
    }),
  mkdir: (call) =>
    forEachPath(call, operands(call.args), 'cannot create directory ', (path) => {
      const makesParents = hasFlag(call.args, 'p');
      const parts = call.shell.resolve(path).split('/');
      for (let depth = makesParents ? 2 : parts.length; depth <= parts.length; depth++) {
        const directory = parts.slice(0, depth).join('/');
        if (makesParents && call.guest.files.stat(directory)?.kind === 'directory') continue;
        call.guest.files.makeDirectory(directory, call.user);
      }
    }),
  rm: (call) =>
    forEachPath(call, operands(call.args), 'cannot remove ', (path) => {
      const absolute = call.shell.resolve(path);
      if (hasFlag(call.args, 'f') && call.guest.files.stat(absolute) === undefined) return;
      call.guest.files.remove(absolute, call.user);
    }),
  sync: () => 0,
};
