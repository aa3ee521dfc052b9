import { z } from '@hono/zod-openapi';
import { checkAssertion } from '../journal/assertions.ts';
import { journalFilterSchema } from '../journal/filter.ts';
import { judge, verdictSchema } from '../verdict/verdict.ts';
import { routesOf } from './route.ts';
import { assertionResultsSchema, assertionsSchema, journalSchema } from './schemas.ts';

const ofJournal = routesOf('Journal');

export const journalRoutes = [
  ofJournal('get', '/journal', {
    id: 'readJournal',
    summary: 'Requests to providers and the marketplace, with their answers',
    description: 'Oldest first; the newest 10,000 are kept. Requests to the control API are not recorded.',
    input: journalFilterSchema,
    reply: ['The matching entries.', journalSchema],
    async run({ journal }, filter) {
      const entries = await journal.entries(filter);
      return { count: journal.count, dropped: journal.dropped, entries };
    },
  }),
  ofJournal('delete', '/journal', {
    id: 'clearJournal',
    summary: 'Clear the journal',
    run: ({ journal }) => journal.clear(),
  }),
  ofJournal('post', '/journal/assertions', {
    id: 'checkAssertions',
    summary: 'Check assertions about the requests of the client',
    description: 'A failed assertion is not an HTTP error: `holds` is false, and `message` gives the reason.',
    input: assertionsSchema,
    example: {
      assertions: [{ assert: 'polled_at_least_every', seconds: 30 }, { assert: 'never_created_twice' }],
    },
    reply: ['Which hold.', assertionResultsSchema],
    async run({ journal, sandbox: { clock } }, { assertions }) {
      const entries = await journal.entries();
      const results = assertions.map((assertion) => checkAssertion(assertion, entries, clock.now()));
      return { holds: results.every(({ holds }) => holds), results, dropped: journal.dropped };
    },
  }),
  ofJournal('get', '/verdict', {
    id: 'readVerdict',
    summary: 'Which rules of the contract the client obeys',
    description:
      'A failed rule is not an HTTP error: `holds` is false, and `findings` names journal entries.',
    input: z.strictObject({
      account: z.string().optional().meta({
        description:
          'The account of the client. Default: all requests except those that the marketplace sent.',
      }),
    }),
    reply: ['The verdict on all requests in the journal.', verdictSchema],
    run: async ({ journal, sandbox: { clock } }, options) =>
      judge({ entries: await journal.entries(), dropped: journal.dropped }, clock.now(), options),
  }),
];
