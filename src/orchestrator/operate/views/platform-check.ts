import { z } from 'zod';
import { ApiError } from '../../../contract/errors.ts';
import { timestampSchema } from '../../../contract/values.ts';
import { defineView } from '../../../operator-kit/operation.ts';
import { toTime } from '../../../operator-kit/views/values.ts';
import type { Diagnosis } from '../../../ports/diagnosis.ts';

/** A check of a platform that is running or finished. */
export interface CheckedPlatform {
  startedAt: number;
  isFinished: boolean;
  findings: readonly Diagnosis[];
}

/** Checks the platforms of a server, as `berth doctor` does. */
export interface PlatformChecker {
  /** Begins a check if none is recent. Null: there is no such platform. */
  read(platform: string): CheckedPlatform | null;
}

const checkSchema = z
  .object({
    platform: z.string(),
    started_at: timestampSchema,
    finished: z.boolean().meta({ description: 'False: ask again for the remaining findings.' }),
    findings: z.array(
      z.object({
        verdict: z.enum(['ok', 'skipped', 'warning', 'broken']),
        subject: z.string(),
        finding: z.string(),
        remedy: z.string().nullable(),
      }),
    ),
  })
  .meta({ id: 'PlatformCheck' });

export const platformCheckView = defineView({
  name: 'checkPlatform',
  tag: 'Views',
  path: '/platforms/{platform}/check',
  summary: 'Findings of `berth doctor` for one platform',
  description:
    'Checks the prerequisites of its driver from this server, within 20 seconds and at most once a minute. Changes nothing.',
  input: { platform: z.string() },
  errors: ['not_found'],
  reply: ['The findings so far.', checkSchema],
  detail: {
    title: ({ platform }) => `Check of ${platform}`,
    facts: [{ field: 'started_at', title: 'started' }, 'finished'],
    lists: [
      {
        rows: 'findings',
        title: 'Findings',
        none: 'No finding yet.',
        columns: [
          'verdict',
          'subject',
          { field: 'finding', kind: 'text' },
          { field: 'remedy', kind: 'text' },
        ],
      },
    ],
  },
  read: ({ checks }: { checks?: PlatformChecker | undefined }, { platform }) => {
    const found = checks?.read(platform) ?? null;
    if (found === null)
      throw new ApiError('not_found', `This server has no platform "${platform}" to check.`);
    return {
      platform,
      started_at: toTime(found.startedAt),
      finished: found.isFinished,
      findings: found.findings.map(({ verdict, subject, finding, remedy = null }) => ({
        verdict,
        subject,
        finding,
        remedy,
      })),
    };
  },
});
