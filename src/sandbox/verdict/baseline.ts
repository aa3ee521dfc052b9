import { z } from '@hono/zod-openapi';
import { requestFaults } from './faults.ts';
import type { Finding } from './rule.ts';
import { rules } from './rules.ts';

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

/** The entry that accepts a finding. */
export function acceptedBy(
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
