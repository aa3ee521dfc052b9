import { createRoute } from '@hono/zod-openapi';
import { errors } from '../../orchestrator/http/errors.ts';
import { checkAssertion } from '../journal/assertions.ts';
import { journalFilterSchema } from '../journal/filter.ts';
import { bodyOf, type ControlDeps, createRouter, invalidBody, on } from './deps.ts';
import { assertionResultsSchema, assertionsSchema, doneSchema, journalSchema } from './schemas.ts';

const readRoute = createRoute({
  ...on('Journal', 'get', '/journal'),
  operationId: 'readJournal',
  summary: 'Requests to providers and the marketplace, with their answers',
  description: 'Oldest first; the newest 10,000 are kept. Requests to the control API are not recorded.',
  request: { query: journalFilterSchema },
  responses: errors.replies(200, 'The matching entries.', journalSchema, ['unauthorized']),
});

const clearRoute = createRoute({
  ...on('Journal', 'delete', '/journal'),
  operationId: 'clearJournal',
  summary: 'Clear the journal',
  responses: errors.replies(200, 'Done.', doneSchema, ['unauthorized']),
});

const assertRoute = createRoute({
  ...on('Journal', 'post', '/journal/assertions'),
  operationId: 'checkAssertions',
  summary: 'Check assertions about the requests of the client',
  description: 'A failed assertion is not an HTTP error: `holds` is false, and `message` gives the reason.',
  request: bodyOf(assertionsSchema, {
    assertions: [{ assert: 'polled_at_least_every', seconds: 30 }, { assert: 'never_created_twice' }],
  }),
  responses: errors.replies(200, 'Which hold.', assertionResultsSchema, invalidBody),
});

export function journalRoutes(deps: ControlDeps) {
  const { journal } = deps;
  const { clock } = deps.sandbox;
  return createRouter()
    .openapi(readRoute, async (context) => {
      const entries = await journal.entries(context.req.valid('query'));
      return context.json({ count: journal.count, dropped: journal.dropped, entries }, 200);
    })
    .openapi(clearRoute, (context) => {
      journal.clear();
      return context.json({ done: true as const }, 200);
    })
    .openapi(assertRoute, async (context) => {
      const entries = await journal.entries();
      const { assertions } = context.req.valid('json');
      const results = assertions.map((assertion) => checkAssertion(assertion, entries, clock.now()));
      const holds = results.every((result) => result.holds);
      return context.json({ holds, results, dropped: journal.dropped }, 200);
    });
}
