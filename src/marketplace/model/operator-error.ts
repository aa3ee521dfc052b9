import { Fatal } from '../../ports/fatal.ts';

/** An operator asked for what cannot be done; the message says why, and what to do. */
export class OperatorError extends Fatal {
  override readonly name = 'OperatorError';
}
