import type { Mutant } from './mutant.ts';
import type { AutoClock } from './reference/auto-clock.ts';
import type { ReferenceRequest, WireAnswer } from './reference/exchange.ts';
import type { Rules } from './reference/rules.ts';

/** Changes the answers of some routes. `change` returns undefined to leave an answer unchanged. */
export function onAnswers(
  routes: readonly string[],
  change: (answer: WireAnswer, request: ReferenceRequest) => WireAnswer | undefined,
): Mutant['behave'] {
  return (rules, hit) => ({
    ...rules,
    answer: (request, answer) => {
      const usual = rules.answer(request, answer);
      const changed = routes.includes(request.route ?? '') ? change(usual, request) : undefined;
      if (changed === undefined) return usual;
      hit();
      return changed;
    },
  });
}

/** Replaces one rule. `change` returns undefined to keep the usual result. */
export function onRule<Name extends keyof Rules>(
  name: Name,
  change: (
    usual: ReturnType<Rules[Name]>,
    ...given: Parameters<Rules[Name]>
  ) => ReturnType<Rules[Name]> | undefined,
): Mutant['behave'] {
  return (rules, hit) => {
    const rule = rules[name] as (...given: Parameters<Rules[Name]>) => ReturnType<Rules[Name]>;
    const changed = (...given: Parameters<Rules[Name]>): ReturnType<Rules[Name]> => {
      const usual = rule.apply(rules, given);
      const other = change(usual, ...given);
      if (other === undefined) return usual;
      hit();
      return other;
    };
    return { ...rules, [name]: changed };
  };
}

/** Returns the answer with some fields of its body changed. */
export function withFields(answer: WireAnswer, fields: Readonly<Record<string, unknown>>): WireAnswer {
  return { ...answer, json: { ...(answer.json as object), ...fields } };
}

/** Whether it is a 2xx answer with a body. */
export function isShown(answer: WireAnswer): boolean {
  return answer.status < 300 && answer.json !== undefined;
}

/** How many calls there were before at the same moment. */
export function countAtOnce(clock: AutoClock): () => number {
  let moment = -1;
  let count = 0;
  return () => {
    count = clock.now() === moment ? count + 1 : 0;
    moment = clock.now();
    return count;
  };
}

/** The reference's error reply. */
export function refusal(status: number, code: string): WireAnswer {
  return {
    status,
    headers: { 'content-type': 'application/json' },
    json: { error: { code, message: 'The request was refused.' } },
  };
}
