import { z } from 'zod';
import { timestampSchema } from '../../../contract/values.ts';
import { toTime } from '../../../operator-kit/views/values.ts';
import type { HistoryEvent, PlatformCall } from '../../model/history.ts';
import type { InstanceRecord } from '../../model/records.ts';
import { cloudInitStates, readCloudInit } from './cloud-init.ts';

const callSchema = z.object({
  at: timestampSchema,
  call: z.string(),
  outcome: z.string(),
  took_ms: z.number(),
  detail: z.string().nullable(),
});

/** The recorded facts about a failed instance. */
export const dossierSchema = z
  .object({
    error: z.string().nullable().meta({ description: 'The error shown to the tenant.' }),
    cause: z
      .string()
      .nullable()
      .meta({ description: 'The error reported by the platform, for operators only.' }),
    calls: z.array(callSchema).meta({ description: 'Failed calls to the platform, oldest first.' }),
    ssh: z.array(callSchema).meta({
      description:
        'Proofs over SSH; `outcome` is the step that failed, or `proved`. Each problem is listed once.',
    }),
    cloud_init: z
      .object({ status: z.enum(cloudInitStates), line: z.string() })
      .nullable()
      .meta({ description: 'As shown by its console; null: the console does not show it.' }),
    console: z
      .object({ at: timestampSchema, text: z.string() })
      .nullable()
      .meta({ description: 'The last lines of its console; null: not available from the driver, or empty.' }),
  })
  .meta({ id: 'FailureDossier' });
export type Dossier = z.infer<typeof dossierSchema>;

const SUCCESSFUL: ReadonlySet<string> = new Set(['done', 'pending', 'observed', 'gone', 'proved']);

/** Whether a call to the platform or a proof over SSH succeeded. */
export function isFine({ outcome }: Pick<PlatformCall, 'outcome'>): boolean {
  return SUCCESSFUL.has(outcome);
}

/** Collects the facts about a failure. Null if the instance has not failed. */
export function toDossier(
  { status, error }: Pick<InstanceRecord, 'status' | 'error'>,
  events: readonly HistoryEvent[],
): Dossier | null {
  const end = events.findLast(({ toStatus }) => toStatus === 'ERROR');
  if (status !== 'ERROR' && error === null && end === undefined) return null;
  const calls = events.flatMap(({ at, calls }) => calls.map((call) => toCall(at, call)));
  const last = events.findLast((event) => event.console !== null);
  const text = last?.console ?? null;
  return {
    error,
    cause: end === undefined || end.detail === error ? null : end.detail,
    calls: calls.filter((one) => one.call !== 'ssh' && !isFine(one)),
    ssh: calls.filter(({ call }) => call === 'ssh'),
    cloud_init: (text === null ? undefined : readCloudInit(text)) ?? null,
    console: text === null || last === undefined ? null : { at: toTime(last.at), text },
  };
}

function toCall(at: number, { call, outcome, tookMs, detail }: PlatformCall): Dossier['calls'][number] {
  return { at: toTime(at), call, outcome, took_ms: tookMs, detail: detail ?? null };
}
