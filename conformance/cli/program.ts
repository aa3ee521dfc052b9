import type { Command } from 'commander';
import { SuiteFault } from '../transcript/transcript.ts';
import { EXIT } from '../verdict/outcome.ts';
import type { CliParts } from './parts.ts';
import type { Terminal } from './terminal.ts';

/** The name of the command. */
export const NAME = 'berth conformance';

/**
 * Reports a command-line mistake as one sentence with a pointer to the help. It never repeats a value, which may be a
 * secret.
 */
export function explainMistakes(command: Command, terminal: Terminal, name = NAME): void {
  command.exitOverride();
  command.configureOutput({
    writeOut: (text) => terminal.out(text),
    writeErr: (text) => terminal.err(text),
    outputError: (text, write) => {
      const [mistake = '', ...hints] = text
        .replace(/^error: /, '')
        .replace(/'(--?[\w-]+)=[^']*'/, "'$1'")
        .trim()
        .split('\n');
      const sentence = [mistake.replace(/\.$/, ''), ...hints].join(' ');
      write(`${NAME}: ${sentence}: see \`${name} --help\`.\n`);
    },
  });
  for (const inner of command.commands) explainMistakes(inner, terminal, `${name} ${inner.name()}`);
}

/** Refuses an API key as an argument: every process on the machine could read it. */
export function refuseKeyOptions(command: Command): void {
  for (const [option, instead] of [
    ['--api-key', 'BERTH_API_KEY or --api-key-file'],
    ['--second-api-key', 'BERTH_SECOND_API_KEY or --second-api-key-file'],
    ['--other-account-key', 'BERTH_OTHER_ACCOUNT_KEY or --other-account-key-file'],
  ] as const) {
    command.addOption(command.createOption(`${option} [key]`).hideHelp());
    command.on(`option:${option.slice(2)}`, () => refuseKey(option, instead));
  }
}

function refuseKey(option: string, instead: string): never {
  throw new CommandError(
    `there is no ${option}: everyone on this machine can see a command line, and the shell's history keeps it; the key comes from ${instead}`,
  );
}

/** Ends the command with a message for the user. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
  readonly exitCode: number;

  constructor(message: string, exitCode: number = EXIT.configuration) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** Reports a fault of the suite itself. */
export function reportSuiteFault(
  error: unknown,
  { terminal, env }: Pick<CliParts, 'terminal' | 'env'>,
): void {
  const origin = error instanceof SuiteFault ? (error.cause ?? error) : error;
  const message = error instanceof Error ? error.message : String(error);
  terminal.err(
    `${NAME}: a fault of the suite, not of the target: ${message || 'an error without a message'}. Please report it with the --transcript file; BERTH_DEBUG=1 prints the stack trace.\n`,
  );
  if (env['BERTH_DEBUG'] && origin instanceof Error) terminal.err(`${origin.stack}\n`);
}
