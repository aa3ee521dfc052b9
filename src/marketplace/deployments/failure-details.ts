import { toOneLine } from '../../contract/one-line.ts';

const MAX_LENGTH = 300;

/** A provider's words as M: shows them: "One readable line on failed deployments". */
export function toFailureDetails(text: string): string {
  return toOneLine(text, MAX_LENGTH);
}
