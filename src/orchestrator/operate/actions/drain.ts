import { z } from 'zod';
import { instanceStatusSchema } from '../../../contract/instance.ts';
import { defineAction, type TextPart } from '../../../operator-kit/operation.ts';
import { type CordonSubject, concerns } from '../../model/cordon.ts';
import type { InstanceRecord } from '../../model/records.ts';
import type { Reader } from '../../model/store.ts';
import {
  type CordonDeps,
  cordon,
  cordonExample,
  cordonFields,
  cordonFlags,
  cordonRowSchema,
  describe,
  endOf,
  subjectArgs,
} from './cordons.ts';

const drainedSchema = z
  .object({
    cordon: cordonRowSchema,
    empty: z.boolean().meta({ description: 'No machine is left there.' }),
    by_status: z.partialRecord(instanceStatusSchema, z.int()),
    instances: z.array(
      z.object({
        id: z.string(),
        status: instanceStatusSchema,
        account: z.string(),
        offer: z.string(),
        region: z.string(),
        host: z.string().nullable(),
      }),
    ),
  })
  .meta({ id: 'Drained', description: 'What remains on a drained subject; if many, the oldest.' });

const MAX_LISTED = 200;

/**
 * Cordons the subject and returns what is left there. Tenants' machines are never stopped or moved: the tenants delete
 * them, or an operator does so one by one. A repeated call returns the progress.
 */
export const drain = defineAction({
  name: 'drain',
  tag: 'Actions',
  path: '/drain',
  summary: 'Cordon, and list the machines left there',
  description: 'Nothing is stopped. Repeat the request to see the progress.',
  input: cordonFields,
  example: cordonExample,
  reply: ['The machines left.', drainedSchema],
  commands: [{ name: 'drain', args: subjectArgs, flags: cordonFlags, toText: describeDrained }],
  run: async (deps: CordonDeps, input, actor) => {
    // The cordon writes the audit row. The machines are read after its commit: no create adds one from then on.
    const set = await cordon.perform(deps, actor, input);
    const left = await machinesOf(deps.store.read, set);
    const byStatus: z.output<typeof drainedSchema>['by_status'] = {};
    for (const { status } of left) byStatus[status] = (byStatus[status] ?? 0) + 1;
    return {
      cordon: set,
      empty: left.length === 0,
      by_status: byStatus,
      instances: left.slice(0, MAX_LISTED).map(({ id, accountId, status, region, offerId, host }) => ({
        id,
        status,
        account: accountId,
        offer: offerId,
        region,
        host,
      })),
    };
  },
});

function describeDrained({
  cordon: set,
  empty,
  by_status,
  instances,
}: z.output<typeof drainedSchema>): TextPart[] {
  const isSet = `Nothing new is placed on ${describe(set)} until ${endOf(set)}.`;
  if (empty) return [isSet, 'No machine is left there.'];
  const counts = Object.entries(by_status).map(([status, count]) => `${count} ${status}`);
  return [
    isSet,
    `Still there: ${counts.join(', ')}. Berth does not stop machines of tenants:`,
    instances,
    'Ask again with the same command. To end one yourself: berth instances rm <id>',
  ];
}

/** Instances that may have a machine there, oldest first. */
async function machinesOf(
  { instances, work }: Pick<Reader, 'instances' | 'work'>,
  subject: CordonSubject,
): Promise<InstanceRecord[]> {
  const all = await instances.list(subject.kind === 'region' ? { region: subject.name } : {});
  const there: InstanceRecord[] = [];
  for (const record of all)
    if (isOn(record, subject) && (await mayHaveMachine(work, record))) there.push(record);
  return there;
}

/** A machine that is being made may be on any host until its row names one. */
function isOn({ region, offerId, platform, host, status }: InstanceRecord, subject: CordonSubject): boolean {
  const isAnywhere = host === null && status === 'PROVISIONING' && subject.kind === 'host';
  return concerns(subject, { region, offer: offerId, platform, host: isAnywhere ? subject.name : host });
}

/** An instance that has ended may still have its machine. `release`: it is gone, and only its unit is kept. */
async function mayHaveMachine(work: Reader['work'], { id, status }: InstanceRecord): Promise<boolean> {
  if (status !== 'ERROR' && status !== 'OFFLINE') return true;
  const kind = (await work.of(id))?.kind ?? 'release';
  return kind !== 'release';
}
