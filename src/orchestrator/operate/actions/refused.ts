import type { ErrorCode } from '../../../contract/errors.ts';
import { Fatal } from '../../../ports/errors.ts';

/** Refuses what only a server can do: a command on the database has no `part` of it. @throws {ActionRefused} */
export function assertOnServer(part: object | undefined): void {
  if (part === undefined)
    throw new ActionRefused('This needs a running server: use its context, see `berth context`.');
}

/** Refuses an operator's request. The message says why. Nothing was changed. */
export class ActionRefused extends Fatal {
  override readonly name = 'ActionRefused';
  /** The error code in the reply of the operator API. */
  readonly code: ErrorCode;

  constructor(message: string, code: ErrorCode = 'invalid_state') {
    super(message);
    this.code = code;
  }
}
