import { ConfigError } from '../config/findings.ts';
import { AccountsError } from '../orchestrator/accounts/accounts.ts';
import { PlatformMismatch } from '../orchestrator/reconcile/installation.ts';
import { DatabaseRefused } from '../store/database-refused.ts';

/** A reason to end with a sentence for the person at the terminal, and exit code 1. */
export class Fatal extends Error {
  override readonly name = 'Fatal';
}

/** Whether the message of an error is written for the person at the terminal. */
export function isForUser(error: unknown): error is Error {
  return (
    error instanceof Fatal ||
    error instanceof ConfigError ||
    error instanceof DatabaseRefused ||
    error instanceof AccountsError ||
    error instanceof PlatformMismatch
  );
}
