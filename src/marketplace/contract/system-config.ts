import { z } from 'zod';
import { type FailureReason, failureReasons } from './deployment.ts';

const limitSchema = z.int().nonnegative().meta({ description: 'Requests in one window.' });

/** M: "including minimum-runtime settings; field shape: not shown". */
export const systemConfigSchema = z
  .object({
    currency: z.literal('USD'),
    minimumRuntimeMinutes: z.number().meta({ description: 'Default minimum runtime before a terminate.' }),
    pollIntervalSeconds: z.object({ min: z.number(), max: z.number() }),
    providers: z.array(z.string()),
    volumeProviders: z.array(z.string()),
    failureReasons: z
      .object(
        Object.fromEntries(Object.keys(failureReasons).map((reason) => [reason, z.string()])) as Record<
          FailureReason,
          z.ZodString
        >,
      )
      .meta({ description: 'Every value of failureReason with its meaning.' }),
    rateLimits: z.object({
      windowSeconds: z.number(),
      catalogReads: limitSchema,
      accountRequests: limitSchema,
      deploymentCreates: limitSchema,
      otherRequests: limitSchema,
    }),
  })
  .meta({ id: 'SystemConfig' });
export type SystemConfig = z.infer<typeof systemConfigSchema>;
