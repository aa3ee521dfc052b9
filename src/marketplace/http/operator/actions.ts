import { createRoute, z } from '@hono/zod-openapi';
import { timestampSchema } from '../../../contract/values.ts';
import { bearer, jsonContent } from '../../../http/api/create-app.ts';
import { auditedLookup } from '../../../operators/audit.ts';
import { actorOf, createOperatorRouter } from '../../../operators/http/router.ts';
import { toTime } from '../../../operators/views/values.ts';
import { findTeam } from '../../model/own-rows.ts';
import {
  acceptProviderLosses,
  type Booking,
  bookCredit,
  cleanUpLost,
  resendMail,
} from '../../operate/actions.ts';
import { mailRowSchema, toMailRow } from '../../operate/views/mails.ts';
import { errors, type OperatorDeps } from './deps.ts';

const shared = { tags: ['Actions'], security: bearer };
const refusals = ['unauthorized', ...errors.ofBodies] as const;

const creditSchema = z
  .object({
    kind: z.enum(['top_up', 'grant', 'adjustment']),
    amount_usd: z
      .number()
      .min(-1e9)
      .max(1e9)
      .multipleOf(0.000001)
      .meta({ description: 'Below zero only for an adjustment.' }),
    reference: z.string().min(1).max(200).meta({
      description: 'Reference of the payment or order. A reference is booked only once.',
    }),
    reason: z.string().min(1).max(500).optional(),
  })
  .refine(({ kind, reason }) => kind !== 'adjustment' || reason !== undefined, {
    path: ['reason'],
    error: 'expected a reason; it is kept in the books',
  });

const creditRoute = createRoute({
  ...shared,
  method: 'post',
  path: '/teams/{team}/credit',
  operationId: 'bookCredit',
  summary: 'Book a payment, a grant or a correction',
  description: 'Idempotent: a repeated request with the same reference books nothing more.',
  request: {
    params: z.object({ team: z.string().meta({ description: 'The slug or the id of a team.' }) }),
    body: {
      required: true,
      content: jsonContent(creditSchema, {
        kind: 'grant',
        amount_usd: 25,
        reference: 'outage-of-monday',
        reason: 'for the outage of Monday',
      }),
    },
  },
  responses: errors.replies(
    201,
    'The booking.',
    z.object({ id: z.string(), team_id: z.string(), memo: z.string() }),
    [...refusals, 'not_found'],
  ),
});

const USUAL_S = 3600;
const LONGEST_S = 24 * 3600;

const acceptRoute = createRoute({
  ...shared,
  method: 'post',
  path: '/providers/{provider}/losses/accept',
  operationId: 'acceptLosses',
  summary: 'Accept the losses of a provider',
  description:
    'For `for_s` seconds, deployments and volumes that the provider answers 404 for end, without the limit on losses.',
  request: {
    params: z.object({ provider: z.string() }),
    body: {
      required: true,
      content: jsonContent(
        z.object({
          for_s: z
            .int()
            .min(60)
            .max(LONGEST_S)
            .default(USUAL_S)
            .meta({ description: 'Duration in seconds.' }),
        }),
        { for_s: USUAL_S },
      ),
    },
  },
  responses: errors.replies(
    200,
    'When the acceptance ends.',
    z.object({ provider: z.string(), accepted_until: timestampSchema }),
    refusals,
  ),
});

const cleanUpRoute = createRoute({
  ...shared,
  method: 'post',
  path: '/deployments/{deploymentId}/clean-up',
  operationId: 'cleanUpLost',
  summary: 'Delete the instance of a lost deployment',
  description:
    'A deployment is lost if it ended because its provider answered 404 for its instance. The instance is kept until ' +
    'this orders its deletion; then it is deleted within seconds, or once its provider lists it again.',
  request: { params: z.object({ deploymentId: z.string() }) },
  responses: errors.replies(
    200,
    'The deployment and its instance.',
    z.object({ id: z.string(), provider: z.string(), provider_instance_id: z.string(), cleanup: z.string() }),
    [...refusals, 'not_found'],
  ),
});

const resendRoute = createRoute({
  ...shared,
  method: 'post',
  path: '/mails/{mailId}/resend',
  operationId: 'resendMail',
  summary: 'Try a waiting or given-up mail now',
  description: 'A mail that was sent is refused.',
  request: { params: z.object({ mailId: z.string() }) },
  responses: errors.replies(200, 'The mail.', mailRowSchema, [...refusals, 'not_found']),
});

/** The operator's actions. Each writes a row of the audit log. */
export function actionRoutes(deps: Pick<OperatorDeps, 'store' | 'clock' | 'random'>) {
  return createOperatorRouter()
    .openapi(creditRoute, async (context) => {
      const { kind, amount_usd: usd, ...of } = context.req.valid('json');
      const actor = actorOf(context);
      const { team } = context.req.valid('param');
      const action = { action: `credit.${kind}`, subject: team };
      const { id: teamId } = await auditedLookup(deps, actor, action, () =>
        findTeam(deps.store.read.teams, team),
      );
      const amountMicroUsd = Math.round(usd * 1_000_000);
      // The schema has validated the fields that each kind needs.
      const booking = { kind, teamId, amountMicroUsd, ...of } as Booking;
      const { id, memo } = await bookCredit(deps, actor, booking);
      return context.json({ id, team_id: teamId, memo }, 201);
    })
    .openapi(acceptRoute, async (context) => {
      const { provider } = context.req.valid('param');
      const order = { providerId: provider, forMs: context.req.valid('json').for_s * 1000 };
      const until = await acceptProviderLosses(deps, actorOf(context), order);
      return context.json({ provider, accepted_until: toTime(until) }, 200);
    })
    .openapi(cleanUpRoute, async (context) => {
      const { deploymentId } = context.req.valid('param');
      const { id, ...record } = await cleanUpLost(deps, actorOf(context), deploymentId);
      const { providerId: provider, providerInstanceId, cleanup } = record;
      return context.json({ id, provider, provider_instance_id: providerInstanceId, cleanup }, 200);
    })
    .openapi(resendRoute, async (context) => {
      const { mailId } = context.req.valid('param');
      return context.json(toMailRow(await resendMail(deps, actorOf(context), mailId)), 200);
    });
}
