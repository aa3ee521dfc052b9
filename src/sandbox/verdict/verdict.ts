import { z } from '@hono/zod-openapi';
import type { JournalEntry } from '../journal/entry.ts';
import { requestFaults } from './faults.ts';
import { ClientJournal, type Finding, type Rule } from './rule.ts';
import { rules, rulesFor } from './rules.ts';

const ruleIds = [...rules.map(({ id }) => id), ...requestFaults.map((fault) => `survives-${fault}`)];

const acceptedSchema = z
  .strictObject({
    rule: z.enum(ruleIds),
    reason: z.string().min(1).meta({ description: 'Why the failure is accepted.' }),
    resources: z.array(z.string()).min(1).optional().meta({
      description: 'Only the failures of these resources. Default: all failures of the rule.',
    }),
  })
  .meta({ id: 'AcceptedFailure' });

/** Accepted failures, the content of a baseline file. */
export const baselineSchema = z.strictObject({ accepted: z.array(acceptedSchema) }).meta({ id: 'Baseline' });
export type Baseline = z.infer<typeof baselineSchema>;
export type AcceptedFailure = Baseline['accepted'][number];

const results = ['pass', 'fail', 'accepted', 'not_tested'] as const;

const findingSchema = z.object({
  message: z.string(),
  entries: z.array(z.int()).meta({ description: 'Numbers of the journal’s entries that show it.' }),
  resource: z.string().optional(),
  accepted: z.string().optional().meta({ description: 'Why the baseline accepts it.' }),
});

const ruleResultSchema = z
  .object({
    rule: z.string(),
    cites: z.string().meta({
      description:
        'The sentence that the client obeys: `O:` is the contract of the providers, `M:` the API of the marketplace.',
    }),
    judges: z.string().meta({ description: 'What is judged.' }),
    result: z.enum(results).meta({
      description: '`accepted`: it fails, and the baseline accepts all of its findings.',
    }),
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
    no_longer_failing: baselineSchema.shape.accepted.meta({
      description: 'Entries of the baseline that can be removed: their rule was tested, and does not fail.',
    }),
  })
  .meta({ id: 'Verdict' });
export type Verdict = z.infer<typeof verdictSchema>;

export interface VerdictOptions {
  /** The client’s account, as in a filter of the journal. Default: all accounts. */
  account?: string | undefined;
  /** Failures that are accepted. Default: none. */
  baseline?: Baseline | undefined;
}

/** Judges a client by its requests until `now`. `dropped`: number of older requests that the journal no longer keeps. */
export function judge(
  { entries, dropped = 0 }: { entries: readonly JournalEntry[]; dropped?: number },
  now: number,
  { account, baseline = { accepted: [] } }: VerdictOptions = {},
): Verdict {
  const journal = new ClientJournal(entries, now, account);
  const used = new Set<AcceptedFailure>();
  const judged = rulesFor(journal).map((rule) => resultOf(rule, journal, baseline, used));
  const wasTested = new Set(judged.filter(({ result }) => result !== 'not_tested').map(({ rule }) => rule));
  const count = (asked: RuleResult['result']): number =>
    judged.filter(({ result }) => result === asked).length;
  const counts = {
    pass: count('pass'),
    fail: count('fail'),
    accepted: count('accepted'),
    not_tested: count('not_tested'),
  };
  return {
    at: new Date(now).toISOString(),
    account,
    requests: journal.entries.length,
    dropped,
    holds: counts.fail === 0 && wasTested.size > 0,
    counts,
    rules: judged,
    no_longer_failing: baseline.accepted.filter((entry) => wasTested.has(entry.rule) && !used.has(entry)),
  };
}

function resultOf(
  { id, cites, judges, judge: judgeRule }: Rule,
  journal: ClientJournal,
  baseline: Baseline,
  used: Set<AcceptedFailure>,
): RuleResult {
  const judged = judgeRule(journal);
  const rule = { rule: id, cites, judges };
  if ('notTested' in judged)
    return { ...rule, result: 'not_tested', not_tested: judged.notTested, findings: [] };
  const findings = judged.map((finding) => {
    const entry = acceptedBy(baseline, id, finding);
    if (entry === undefined) return finding;
    used.add(entry);
    return { ...finding, accepted: entry.reason };
  });
  const isAccepted = findings.every((finding) => 'accepted' in finding);
  const result = findings.length === 0 ? 'pass' : isAccepted ? 'accepted' : 'fail';
  return { ...rule, result, findings };
}

/** The entry that accepts a finding. */
function acceptedBy(
  { accepted }: Baseline,
  ruleId: string,
  { resource }: Finding,
): AcceptedFailure | undefined {
  return accepted.find(
    ({ rule, resources }) =>
      rule === ruleId &&
      (resources === undefined || (resource !== undefined && resources.includes(resource))),
  );
}
