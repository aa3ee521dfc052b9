import { SuiteFault } from '../verdict/judge.ts';
import type { CliParts } from './parts.ts';
import { NAME } from './program.ts';

/** Says that the suite is at fault, and not the target. */
export function tellFault(error: unknown, { terminal, env }: Pick<CliParts, 'terminal' | 'env'>): void {
  const origin = error instanceof SuiteFault ? (error.cause ?? error) : error;
  const message = error instanceof Error ? error.message : String(error);
  terminal.err(
    `${NAME}: a fault of the suite, which says nothing about the target: ${message || 'an error without a message'}. Please report it, with the file of --transcript; BERTH_DEBUG=1 shows where it happened.\n`,
  );
  if (env['BERTH_DEBUG'] && origin instanceof Error) terminal.err(`${origin.stack}\n`);
}
