import { onAnswers, onRule, refusal } from '../deviate.ts';
import type { Mutant } from '../mutant.ts';
import type { Issue } from '../reference/errors.ts';

const CREATE = 'POST /instances';
const SOLD_OUT = 'metal-epyc';

/** Faults in refusing invalid creates. */
export const refusalMutants: readonly Mutant[] = [
  {
    id: 'region-is-not-required',
    breaks: 'region is required.',
    reddens: ['NEG-REQUIRED-001'],
    behave: overlooks(({ path, message }) => path === 'region' && message === 'is required'),
  },
  {
    id: 'no-keys-are-needed',
    breaks: 'ssh_keys has at least 1 item.',
    reddens: ['NEG-KEYS-001'],
    behave: overlooks(({ path, message }) => path === 'ssh_keys' && message === 'expected at least 1 item'),
  },
  {
    id: 'keys-are-not-read',
    breaks: 'ssh_keys are raw OpenSSH public key material.',
    reddens: ['NEG-KEYS-002'],
    behave: overlooks(({ path }) => path === 'ssh_keys[1]'),
  },
  {
    id: 'cloud-init-of-any-type',
    breaks: 'cloud_init is a CloudInitConfig.',
    reddens: ['NEG-TYPE-001'],
    behave: overlooks(({ path, message }) => path === 'cloud_init' && message === 'expected an object'),
  },
  {
    id: 'volume-ids-of-any-type',
    breaks: 'volume_ids is a list of texts.',
    reddens: ['NEG-TYPE-002'],
    behave: overlooks(({ path, message }) => path === 'volume_ids' && message === 'expected a list'),
  },
  {
    id: 'files-without-content',
    breaks: 'The content of a CloudInitFile is required.',
    reddens: ['NEG-CLOUD-001'],
    behave: overlooks(({ path }) => path === 'cloud_init.write_files[0].content'),
  },
  {
    id: 'unknown-image-is-the-default',
    breaks: 'operating_system_image is one of the offer’s os_options.',
    reddens: ['NEG-IMAGE-001'],
    behave: overlooks(({ path }) => path === 'operating_system_image'),
  },
  {
    id: 'unknown-offer-is-404',
    breaks: '400: an invalid request.',
    reddens: ['NEG-OFFER-001'],
    behave: onAnswers([CREATE], (answer, { text }) =>
      answer.status === 400 && text.includes('berth-conformance-no-such-id') && !text.includes('volume_ids')
        ? refusal(404, 'not_found')
        : undefined,
    ),
  },
  {
    id: 'sold-where-it-is-not',
    breaks: 'An offer is sold in its regions.',
    reddens: ['NEG-REGION-001'],
    behave: (rules, hit) => ({
      ...rules,
      validateCreate: (body, context) => {
        const known = new Set(context.offers.flatMap(({ free }) => [...free.keys()]));
        const { region } = (body ?? {}) as { region?: string };
        return rules
          .validateCreate(body, context)
          .filter(({ path }) => path !== 'region' || !known.has(region ?? ''));
      },
      claimCapacity(offer, region) {
        if (offer.free.has(region)) return rules.claimCapacity(offer, region);
        hit();
        return true;
      },
      releaseCapacity(offer, region) {
        if (offer.free.has(region)) rules.releaseCapacity(offer, region);
      },
    }),
  },
  {
    id: 'refused-creates-are-made',
    breaks: '400: nothing is made of an invalid request.',
    reddens: ['NEG-NOTHING-001'],
    behave: (rules, hit) => {
      const refused = new Set<string>();
      return {
        ...rules,
        validateCreate(body, context) {
          const issues = rules.validateCreate(body, context);
          if (issues.length === 0 || !issues.every(({ path }) => path === 'ssh_keys[1]')) return issues;
          refused.add((body as { name: string }).name);
          return [];
        },
        answer(request, answer) {
          const usual = rules.answer(request, answer);
          const { name = '' } = (answer.json ?? {}) as { name?: string };
          if (request.route !== CREATE || !refused.has(name)) return usual;
          hit();
          return refusal(400, 'invalid_request');
        },
      };
    },
  },
  {
    id: 'sells-in-a-drained-region',
    breaks: 'A create without capacity is 409.',
    reddens: ['AVL-SOLDOUT-003'],
    behave: (rules, hit) => {
      const isDrained = (id: string, region: string) => id === 'cpu-plain' && region === 'ap-south';
      return {
        ...rules,
        claimCapacity(offer, region) {
          if (!isDrained(offer.id, region)) return rules.claimCapacity(offer, region);
          hit();
          return true;
        },
        releaseCapacity(offer, region) {
          if (!isDrained(offer.id, region)) rules.releaseCapacity(offer, region);
        },
      };
    },
  },
  {
    id: 'sold-out-is-400',
    breaks: 'A create without capacity is 409.',
    reddens: ['AVL-SOLDOUT-001'],
    behave: onAnswers([CREATE], (answer, { text }) =>
      answer.status === 409 && text.includes(SOLD_OUT) ? refusal(400, 'invalid_request') : undefined,
    ),
  },
  {
    id: 'capacity-loss-is-a-conflict',
    breaks: 'The code of capacity loss is capacity_unavailable.',
    reddens: ['AVL-SOLDOUT-002'],
    behave: onAnswers([CREATE], ({ status }) => (status === 409 ? refusal(409, 'conflict') : undefined)),
  },
];

/** Ignores one kind of validation issue. */
function overlooks(isOverlooked: (issue: Issue) => boolean): Mutant['behave'] {
  return onRule('validateCreate', (issues) =>
    issues.length > 0 && issues.every(isOverlooked) ? [] : undefined,
  );
}
