import { type Guest, pause, type Streams } from './guest.ts';
import { fileCommands } from './guest-file-commands.ts';
import type { GuestShell } from './guest-shell.ts';
import { systemCommands } from './guest-system-commands.ts';

/** One call of a command. */
export interface CommandCall extends Streams {
  name: string;
  args: string[];
  /** Whom it runs as. */
  user: string;
  shell: GuestShell;
  guest: Guest;
  signal: AbortSignal;
}

/** Returns the exit status; undefined: this guest does not have the command. */
export type Command = (call: CommandCall) => number | undefined | Promise<number>;

const shellCommands: Record<string, Command> = {
  true: () => 0,
  ':': () => 0,
  false: () => 1,
  echo: ({ args, out }) => {
    const [option] = args;
    const text = (option === '-n' || option === '-e' ? args.slice(1) : args).join(' ');
    const unescaped = option === '-e' ? text.replaceAll('\\n', '\n').replaceAll('\\t', '\t') : text;
    out(option === '-n' ? unescaped : `${unescaped}\n`);
    return 0;
  },
  pwd: ({ shell, out }) => {
    out(`${shell.workingDirectory}\n`);
    return 0;
  },
  cd: ({ args, shell, guest, err }) => {
    const path = shell.resolve(args[0] ?? shell.variables.get('HOME') ?? '/');
    const kind = guest.files.stat(path)?.kind;
    if (kind === 'directory') {
      shell.workingDirectory = path;
      return 0;
    }
    err(`bash: cd: ${args[0]}: ${kind === undefined ? 'No such file or directory' : 'Not a directory'}\n`);
    return 1;
  },
  export: ({ args, shell }) => {
    for (const assignment of args) {
      const [name = '', ...value] = assignment.split('=');
      if (assignment.includes('=')) shell.variables.set(name, value.join('='));
    }
    return 0;
  },
  exit: ({ args, shell }) => {
    shell.hasExited = true;
    return args[0] === undefined ? shell.lastStatus : Number.parseInt(args[0], 10) & 0xff;
  },
  sleep: async ({ args, guest, signal, err }) => {
    const seconds = args.map((arg) => Number(arg.replace(/s$/, ''))).reduce((sum, value) => sum + value, 0);
    if (args.length === 0 || !(seconds >= 0)) {
      err(
        args.length === 0 ? 'sleep: missing operand\n' : `sleep: invalid time interval ‘${args.join(' ')}’\n`,
      );
      return 1;
    }
    return pause(seconds * 1000, guest, signal);
  },
  bash: (call) => runScript(call),
  sh: (call) => runScript(call),
};

/** `sh -c TEXT`; anything else would need a nested shell. */
function runScript(call: CommandCall): number | Promise<number> {
  const { args, shell, signal, err, name } = call;
  const [option, text] = args;
  if (option === undefined || !/^-\w*c$/.test(option) || text === undefined) {
    err(`${name}: only \`${name} -c COMMAND' is simulated\n`);
    return 2;
  }
  return shell.runNested(text, call.user, call, signal);
}

/** All that the guest's shell knows, by name. */
export const guestCommands: Record<string, Command> = {
  ...shellCommands,
  ...fileCommands,
  ...systemCommands,
};
