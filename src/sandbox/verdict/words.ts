import type { Finding } from './rule.ts';
import type { Verdict } from './verdict.ts';

/** Invisible characters, and those that XML does not allow. Line breaks and tabs are text. */
const UNSEEN = /(?![\n\t])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\ufffe\uffff]/gu;

/** Shows invisible characters as escapes such as `\u001b`. */
export function visible(text: string): string {
  return text.replace(UNSEEN, (character) => `\\u${character.codePointAt(0)?.toString(16).padStart(4, '0')}`);
}

/** `The verdict fails: 1 rule failed, 7 passed, …`. */
export function summaryOf({ holds, counts, requests, dropped, account }: Verdict): string {
  const { fail, accepted, pass, not_tested: notTested } = counts;
  const of = account === undefined ? '' : ` of ${account}`;
  const tested = `${fail} failed, ${accepted} accepted, ${pass} passed, ${notTested} not tested`;
  const without =
    dropped === 0 ? '' : ` ${dropped} older requests were not judged: the journal no longer keeps them.`;
  return `${holds ? 'The client passes' : 'The client fails'}: ${tested}, in ${requests} requests${of}.${without}`;
}

export function findingText({ message, entries }: Pick<Finding, 'message' | 'entries'>): string {
  return `${message} (journal ${entries.map((number) => `#${number}`).join(', ')})`;
}

/** Names the entries of the baseline that can be removed. */
export function removableOf({ no_longer_failing: removable }: Verdict): string[] {
  return removable.map(({ rule, resources = [] }) => {
    const of = resources.length === 0 ? '' : ` (${resources.join(', ')})`;
    return `The baseline accepts failures of ${rule}${of}, and there are none: remove that entry.`;
  });
}
