import type { Exchange } from '../transcript/records.ts';
import { successOf, textField } from '../wire/json.ts';
import type { Evidence } from './evidence.ts';

/** A request between two reads of what it was asked of. */
export interface Sandwich {
  before: Exchange;
  asked: Exchange;
  after: Exchange;
}

/**
 * The steps `<scenario>/<action>`, `before-<action>` and `after-<action>`. Undefined where the run did not come to
 * them, or where a read of the two shows no status: then nothing is known of what the request did.
 */
export function sandwichOf(evidence: Evidence, scenario: string, action: string): Sandwich | undefined {
  const [before] = evidence.anySteps(`${scenario}/before-${action}`);
  const [asked] = evidence.anySteps(`${scenario}/${action}`);
  const [after] = evidence.anySteps(`${scenario}/after-${action}`);
  if (before === undefined || asked === undefined || after === undefined) return undefined;
  return statusShown(before) === undefined || statusShown(after) === undefined
    ? undefined
    : { before, asked, after };
}

export function statusShown(exchange: Exchange): string | undefined {
  return textField(successOf(exchange), 'status');
}
