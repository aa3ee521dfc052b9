import { z } from '@hono/zod-openapi';
import type { JournalEntry } from '../journal/entry.ts';
import { ClientJournal, type Rule } from './rule.ts';
import { rulesFor } from './rules.ts';

const results = ['pass', 'fail', 'not_tested'] as const;

const findingSchema = z.object({
  message: z.string(),
  entries: z.array(z.int()).meta({ description: 'Numbers of the journal’s entries that show it.' }),
  resource: z.string().optional(),
});

const ruleResultSchema = z
  .object({
    rule: z.string(),
    cites: z.string().meta({
      description:
        'The sentence that the client obeys: `O:` is the contract of the providers, `M:` the API of the marketplace.',
    }),
    judges: z.string().meta({ description: 'What is judged.' }),
    result: z.enum(results),
    not_tested: z.string().optional().meta({ description: 'Why the journal cannot tell.' }),
    findings: z.array(findingSchema),
  })
  .meta({ id: 'RuleResult' });
export type RuleResult = z.infer<typeof ruleResultSchema>;

export const verdictSchema = z
  .object({
    at: z.iso.datetime(),
    account: z.string().optional(),
    requests: z.int().meta({ description: 'Number of the client’s requests in the journal.' }),
    dropped: z.int().meta({
      description:
        'Number of the oldest requests, of all clients, that the journal no longer keeps. They were not judged.',
    }),
    holds: z.boolean().meta({ description: 'No rule fails, and at least one was tested.' }),
    counts: z.record(z.enum(results), z.int()),
    rules: z.array(ruleResultSchema),
  })
  .meta({ id: 'Verdict' });
export type Verdict = z.infer<typeof verdictSchema>;

export interface VerdictOptions {
  /** The client’s account, as in a filter of the journal. Default: all accounts. */
  account?: string | undefined;
}

/** Judges a client by its requests until `now`. `dropped`: number of older requests that the journal no longer keeps. */
export function judge(
  { entries, dropped = 0 }: { entries: readonly JournalEntry[]; dropped?: number },
  now: number,
  { account }: VerdictOptions = {},
): Verdict {
  const journal = new ClientJournal(entries, now, account);
  const judged = rulesFor(journal).map((rule) => resultOf(rule, journal));
  const count = (wanted: RuleResult['result']): number =>
    judged.filter(({ result }) => result === wanted).length;
  const counts = { pass: count('pass'), fail: count('fail'), not_tested: count('not_tested') };
  return {
    at: new Date(now).toISOString(),
    account,
    requests: journal.entries.length,
    dropped,
    holds: counts.fail === 0 && counts.pass > 0,
    counts,
    rules: judged,
  };
}

function resultOf({ id, cites, judges, judge: judgeRule }: Rule, journal: ClientJournal): RuleResult {
  const findings = judgeRule(journal);
  const rule = { rule: id, cites, judges };
  if ('notTested' in findings)
    return { ...rule, result: 'not_tested', not_tested: findings.notTested, findings: [] };
  return { ...rule, result: findings.length === 0 ? 'pass' : 'fail', findings };
}
