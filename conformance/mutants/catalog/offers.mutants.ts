import { isShown, onAnswers, onRule, refusal, withFields } from '../deviate.ts';
import type { Mutant } from '../mutant.ts';
import { counter, hiding, offersOf, showing, showingRegions } from './deviate-offers.ts';

const CONFIGURATIONS = 'GET /configurations';

/** Faults in the offers of /configurations. */
export const offerMutants: readonly Mutant[] = [
  {
    id: 'empty-type-is-404',
    breaks: 'GET /configurations answers 200 with a list.',
    reddens: ['CFG-LIST-001'],
    behave: onAnswers([CONFIGURATIONS], (answer) =>
      isShown(answer) && offersOf(answer).length === 0 ? refusal(404, 'not_found') : undefined,
    ),
  },
  {
    id: 'no-word-on-cloud-init',
    breaks: 'supports_cloud_init is required.',
    reddens: ['CFG-FIELD-001'],
    behave: showing('metal-epyc', () => ({ supports_cloud_init: undefined })),
  },
  {
    id: 'description-is-null',
    breaks: 'An optional field without a value is left out.',
    reddens: ['CFG-NULL-001'],
    behave: showing('gpu-l4', () => ({ description: null })),
  },
  {
    id: 'images-as-objects',
    breaks: 'os_options is a list of strings.',
    reddens: ['CFG-FIELD-002'],
    behave: showing('metal-epyc', () => ({ os_options: [{ name: 'ubuntu-24.04' }] })),
  },
  {
    id: 'type-of-the-platform',
    breaks: 'instance_type is one of the four.',
    reddens: ['CFG-FILTER-001', 'CFG-TYPE-001'],
    behave: showing('metal-epyc', () => ({ instance_type: 'bare-metal' })),
  },
  {
    id: 'offer-listed-for-each-rack',
    breaks: 'id is a unique offer identifier.',
    reddens: ['CFG-ID-001'],
    behave: onAnswers([CONFIGURATIONS], (answer) => {
      const offers = offersOf(answer);
      const twice = offers.filter(({ id }) => id === 'metal-epyc');
      return twice.length === 0 ? undefined : withFields(answer, { configurations: [...offers, ...twice] });
    }),
  },
  {
    id: 'replicas-with-two-catalogues',
    breaks: 'id is a stable offer identifier.',
    reddens: ['CFG-STABLE-001'],
    behave: (rules, hit, clock) => {
      const count = counter();
      const change = showing('metal-epyc', () => ({ vcpus: count() % 2 === 0 ? 96 : 64 }));
      return change(rules, hit, clock);
    },
  },
  {
    id: 'offer-left-out-after-a-while',
    breaks: 'An unavailable offer is never omitted from the array.',
    reddens: ['CFG-OMIT-001'],
    behave: hiding(({ id }, now) => id === 'metal-epyc' && now > 300),
  },
  {
    id: 'type-filter-ignored',
    breaks: 'instance_type filters.',
    reddens: ['CFG-FILTER-001'],
    behave: onRule('matchesType', (usual) => (usual ? undefined : true)),
  },
  {
    id: 'price-below-zero',
    breaks: 'Prices are USD per hour.',
    reddens: ['CFG-PRICE-001'],
    behave: showing('metal-epyc', () => ({ price_per_hour: -1 })),
  },
  {
    id: 'price-rounded-away',
    breaks: 'price_per_hour is the on-demand price.',
    reddens: ['CFG-PRICE-002'],
    behave: showing('metal-epyc', () => ({ price_per_hour: 0 })),
  },
  {
    id: 'spot-without-its-price',
    breaks: 'spot_price_per_hour is shown when the offer supports spot.',
    reddens: ['CFG-SPOT-001'],
    behave: showing('cpu-spot', () => ({ spot_price_per_hour: undefined })),
  },
  {
    id: 'gpu-in-two-spellings',
    breaks: 'gpu_type is consistent across offers.',
    reddens: ['CFG-GPU-001'],
    behave: showing('metal-epyc', () => ({ gpu_count: 8, gpu_type: 'nvidia L4', gpu_memory_gb: 24 })),
  },
  {
    id: 'region-for-each-pool',
    breaks: 'regions are tokens.',
    reddens: ['CFG-REGION-001'],
    behave: showingRegions('metal-epyc', 'configurations', (regions) => [...regions, ...regions]),
  },
];
