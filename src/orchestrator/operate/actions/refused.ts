import type { ErrorCode } from '../../../contract/errors.ts';
import { Fatal } from '../../../ports/errors.ts';

/** An operator asked for what cannot be done; the message says why. Nothing was changed. */
export class ActionRefused extends Fatal {
  override readonly name = 'ActionRefused';
  /** What the operator's API answers. */
  readonly code: ErrorCode;

  constructor(message: string, code: ErrorCode = 'invalid_state') {
    super(message);
    this.code = code;
  }
}
