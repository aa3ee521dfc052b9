import { Fatal } from '../../../ports/errors.ts';

/** An operator asked for what cannot be done; the message says why. Nothing was changed. */
export class ActionRefused extends Fatal {
  override readonly name = 'ActionRefused';
}
