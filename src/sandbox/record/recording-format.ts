import { z } from 'zod';
import { violationSchema } from './violations.ts';

/** A request to a real provider, and its answer. */
export const recordedExchangeSchema = z
  .object({
    at_ms: z.int().nonnegative().meta({ description: 'Milliseconds since the first exchange.' }),
    request: z.object({ method: z.string(), path: z.string(), body: z.unknown().optional() }),
    response: z.object({
      status: z.int().nullable().meta({ description: 'Null: the provider was not reached.' }),
      headers: z.record(z.string(), z.string()),
      body: z.unknown().optional(),
    }),
    violations: z.array(violationSchema).optional().meta({ description: 'Violations of the contract.' }),
  })
  .meta({ id: 'RecordedExchange' });
export type RecordedExchange = z.infer<typeof recordedExchangeSchema>;
