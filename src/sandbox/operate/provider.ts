import { z } from 'zod';
import { defineAction } from '../../operator-kit/operation.ts';
import type { Store } from '../../orchestrator/model/store.ts';
import type { Clock } from '../../ports/clock.ts';

/** New prices of an offer, in USD per hour. */
export interface MovedPrice {
  price_per_hour?: number | undefined;
  spot_price_per_hour?: number | undefined;
}

/** What changes at a provider of a sandbox only. */
export interface ProviderChanges {
  /** Moves the prices of an offer. Returns its prices, and the number of SPOT instances that now cost the new price. */
  movePrice(offer: string, to: MovedPrice): Promise<MovedPrice & { instances: number }>;
  /** Sets the lifetime of new tokens: of an account, or of all that have none of their own. */
  setTokenLifetime(seconds: number, account: string | undefined): Promise<void>;
}

interface Deps {
  store: Store;
  clock: Pick<Clock, 'now'>;
  changes: ProviderChanges;
}

const priceField = z.number().min(0).optional();

const movePrice = defineAction({
  name: 'movePrice',
  tag: 'Sandbox',
  path: '/offers/{offer}/price',
  summary: 'Move the price of an offer',
  description:
    'As a new catalog does. Existing instances keep their price, except SPOT ones, whose `price_per_hour` is the new spot price. The price while running is at least that while stopped.',
  input: { offer: z.string(), price_per_hour: priceField, spot_price_per_hour: priceField },
  check: {
    isValid: (body) => body.price_per_hour !== undefined || body.spot_price_per_hour !== undefined,
    path: ['price_per_hour'],
    error: 'expected price_per_hour, spot_price_per_hour or both',
  },
  example: { spot_price_per_hour: 0.42 },
  errors: ['not_found'],
  reply: [
    'The prices.',
    z.object({
      price_per_hour: priceField,
      spot_price_per_hour: priceField,
      instances: z.int().meta({ description: 'Number of SPOT instances that now cost the new price.' }),
    }),
  ],
  run: ({ changes }: Deps, { offer, ...to }) => changes.movePrice(offer, to),
});

const MAX_LIFETIME_S = 86_400;

const setTokenLifetime = defineAction({
  name: 'setTokenLifetime',
  tag: 'Sandbox',
  path: '/tokens/lifetime',
  summary: 'Set the lifetime of new tokens',
  description: 'It is the `expires_in` of `POST /auth/token`. Existing tokens keep theirs.',
  input: {
    account: z.string().optional().meta({ description: 'Absent: every account without its own.' }),
    expires_in: z.int().min(1).max(MAX_LIFETIME_S).meta({ description: 'In seconds.' }),
  },
  example: { expires_in: 60 },
  errors: ['not_found'],
  reply: ['The lifetime.', z.object({ expires_in: z.int() })],
  run: async ({ changes }: Deps, { account, expires_in: seconds }) => {
    await changes.setTokenLifetime(seconds, account);
    return { expires_in: seconds };
  },
});

/** What no operator of a production server can do by a request. */
export const providerOperations = [movePrice, setTokenLifetime] as const;
