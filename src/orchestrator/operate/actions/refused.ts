import type { ErrorCode } from '../../../contract/errors.ts';
import { Fatal } from '../../../ports/errors.ts';

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
