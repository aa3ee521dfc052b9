import { ConfigError } from '../config/findings.ts';
import { OperatorError } from '../marketplace/model/operator-error.ts';
import { AccountsError } from '../orchestrator/accounts/accounts.ts';
import { StoreUnavailable } from '../orchestrator/model/store.ts';
import { PlatformMismatch } from '../orchestrator/recovery/installation.ts';
import { DatabaseRefused } from '../store/database-refused.ts';

/** A reason to end with a sentence for the person at the terminal, and exit code 1. */
export class Fatal extends Error {
  override readonly name = 'Fatal';
}

/** What the person at the terminal reads of an error; undefined: it is a fault of the program. */
export function sentenceOf(error: unknown): string | undefined {
  if (error instanceof StoreUnavailable)
    return `The database cannot be used now (${error.message.replace(/^\w+: /, '')}): mend that and try again.`;
  return isForUser(error) ? error.message : undefined;
}

/** Whether the message of an error is written for the person at the terminal. */
function isForUser(error: unknown): error is Error {
  return (
    error instanceof Fatal ||
    error instanceof ConfigError ||
    error instanceof DatabaseRefused ||
    error instanceof AccountsError ||
    error instanceof OperatorError ||
    error instanceof PlatformMismatch
  );
}
