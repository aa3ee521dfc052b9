import { fileCommands } from './file-commands.ts';
import type { Command } from './guest.ts';
import { systemCommands } from './system-commands.ts';

const MAX_SLEEP_S = 3_600;

const shellCommands: Record<string, Command> = {
  true: () => 0,
  false: () => 1,
  echo: ({ args, out }) => {
    const isOpen = args[0] === '-n';
    const text = (isOpen ? args.slice(1) : args).join(' ');
    out(isOpen ? text : `${text}\n`);
    return 0;
  },
  pwd: ({ shell, out }) => {
    out(`${shell.workingDirectory}\n`);
    return 0;
  },
  cd: async ({ args, shell, guest, err }) => {
    const path = args[0] === undefined ? `/home/${shell.user}` : shell.resolve(args[0]);
    const kind = (await guest.files.stat(path))?.kind;
    if (kind === 'directory') {
      shell.workingDirectory = path;
      return 0;
    }
    err(`bash: cd: ${args[0]}: ${kind === undefined ? 'No such file or directory' : 'Not a directory'}\n`);
    return 1;
  },
  exit: ({ args, shell }) => {
    shell.hasExited = true;
    return args[0] === undefined ? shell.lastStatus : Number.parseInt(args[0], 10) & 0xff;
  },
  sleep: async ({ args, guest, signal, err }) => {
    const seconds = Number(args[0]?.replace(/s$/, ''));
    if (args.length === 1 && seconds >= 0 && seconds <= MAX_SLEEP_S)
      return guest.sleep(seconds * 1000, signal);
    err(`sleep: expected one number of seconds, at most ${MAX_SLEEP_S}\n`);
    return 1;
  },
};

export const guestCommands: Record<string, Command> = {
  ...shellCommands,
  ...fileCommands,
  ...systemCommands,
};
