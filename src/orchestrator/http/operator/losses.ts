import { createRoute, z } from '@hono/zod-openapi';
import { timestampSchema } from '../../../contract/values.ts';
import { bearer, jsonContent } from '../../../http/api/create-app.ts';
import { auditedLookup } from '../../../operators/audit.ts';
import { actorOf, createOperatorRouter } from '../../../operators/http/router.ts';
import { toTime } from '../../../operators/views/values.ts';
import { acceptLosses, readLosses, thawPlatform } from '../../operate/actions/losses.ts';
import { ActionRefused } from '../../operate/actions/refused.ts';
import { lossesSchema, thawSchema, toLossesRow, toThawRow } from '../../operate/views/actions.ts';
import { errors } from '../errors.ts';
import type { OperatorDeps } from './deps.ts';

const shared = { tags: ['Actions'], security: bearer };
const refusals = ['unauthorized', 'not_found', 'invalid_state', ...errors.ofBodies] as const;
const USUAL_S = 3600;
const LONGEST_S = 24 * 3600;
const forSeconds = z
  .int()
  .min(60)
  .max(LONGEST_S)
  .default(USUAL_S)
  .meta({ description: 'For how long, in seconds.' });

const lossesRoute = createRoute({
  ...shared,
  method: 'get',
  path: '/losses',
  operationId: 'getLosses',
  summary: 'Lost instances, and instances held over the cap on losses',
  description: 'As `berth losses` shows it.',
  responses: errors.replies(200, 'The losses.', lossesSchema, ['unauthorized']),
});

const acceptRoute = createRoute({
  ...shared,
  method: 'post',
  path: '/losses/accept',
  operationId: 'acceptLosses',
  summary: 'Accept the losses',
  description: 'For this time, instances missing from the platform are ended without a cap.',
  request: {
    body: {
      required: true,
      content: jsonContent(z.object({ platform: z.string().optional(), for_s: forSeconds }), { for_s: 3600 }),
    },
  },
  responses: errors.replies(
    200,
    'Until when.',
    z.object({ platforms: z.array(z.string()), accepted_until: timestampSchema }),
    refusals,
  ),
});

const thawRoute = createRoute({
  ...shared,
  method: 'post',
  path: '/platforms/{platform}/thaw',
  operationId: 'thawPlatform',
  summary: 'Accept a listing although machines are missing',
  description:
    'Missing instances and volumes are then ended as lost. A platform that does not answer cannot be thawed.',
  request: {
    params: z.object({ platform: z.string() }),
    body: {
      required: true,
      content: jsonContent(
        z.object({
          dry_run: z.boolean().default(true).meta({ description: 'False: carry it out.' }),
          for_s: forSeconds,
        }),
        { dry_run: false },
      ),
    },
  },
  responses: errors.replies(200, 'The effect.', thawSchema, refusals),
});

/** The routes for an operator's decisions about missing machines. */
export function lossRoutes({ store, clock, platforms, maxLosses }: OperatorDeps) {
  const known = (platform: string | undefined): string[] => {
    const named = [...platforms.keys()].filter((name) => (platform ?? name) === name);
    if (named.length === 0) throw new ActionRefused(`There is no platform ${platform}.`, 'not_found');
    return named;
  };
  return createOperatorRouter()
    .openapi(lossesRoute, async (context) => {
      const losses = await readLosses(store.read, maxLosses, known(undefined), clock.now());
      return context.json(toLossesRow(losses, maxLosses), 200);
    })
    .openapi(acceptRoute, async (context) => {
      const { platform, for_s: seconds } = context.req.valid('json');
      const actor = actorOf(context);
      const action = { action: 'losses.accept', subject: platform ?? '' };
      const platforms = await auditedLookup({ store, clock }, actor, action, () => known(platform));
      const order = { platforms, forMs: seconds * 1000 };
      const until = await acceptLosses({ store, clock }, actor, order);
      return context.json({ platforms: order.platforms, accepted_until: toTime(until) }, 200);
    })
    .openapi(thawRoute, async (context) => {
      const { dry_run: isDry, for_s: seconds } = context.req.valid('json');
      const actor = actorOf(context);
      const { platform } = context.req.valid('param');
      const action = { action: 'platform.thaw', subject: platform };
      if (isDry) known(platform);
      else await auditedLookup({ store, clock }, actor, action, () => known(platform));
      const order = { platform, forMs: seconds * 1000, isDone: !isDry };
      return context.json(toThawRow(await thawPlatform({ store, clock }, actor, order)), 200);
    });
}
