import { createRoute, z } from '@hono/zod-openapi';
import { errors } from '../../orchestrator/http/errors.ts';
import { baselineSchema } from '../verdict/baseline.ts';
import { judge, type VerdictOptions, verdictSchema } from '../verdict/verdict.ts';
import { bodyOf, type ControlDeps, createRouter, invalidBody, on } from './deps.ts';

const account = z.string().optional().meta({
  description: 'The account of the client. Default: all requests except those that the marketplace sent.',
});

const readRoute = createRoute({
  ...on('Journal', 'get', '/verdict'),
  operationId: 'readVerdict',
  summary: 'Which rules of the contract the client obeys',
  request: { query: z.strictObject({ account }) },
  responses: errors.replies(200, 'The verdict on all requests in the journal.', verdictSchema, [
    'unauthorized',
  ]),
});

const judgeRoute = createRoute({
  ...on('Journal', 'post', '/verdict'),
  operationId: 'judgeClient',
  summary: 'Which rules of the contract the client obeys, with accepted failures',
  description: 'A failed rule is not an HTTP error: `holds` is false, and `findings` names journal entries.',
  request: bodyOf(
    z.strictObject({ account, baseline: baselineSchema.optional() }).meta({ id: 'VerdictRequest' }),
    { baseline: { accepted: [{ rule: 'sends-region', reason: 'The client knows one region.' }] } },
  ),
  responses: errors.replies(200, 'The verdict on all requests in the journal.', verdictSchema, invalidBody),
});

export function verdictRoutes({ journal, sandbox: { clock } }: ControlDeps) {
  const verdict = async (options: VerdictOptions) =>
    judge({ entries: await journal.entries(), dropped: journal.dropped }, clock.now(), options);
  return createRouter()
    .openapi(readRoute, async (context) => context.json(await verdict(context.req.valid('query')), 200))
    .openapi(judgeRoute, async (context) => context.json(await verdict(context.req.valid('json')), 200));
}
