import { onAnswers, onRule, refusal, withFields } from '../deviate.ts';
import type { Mutant } from '../mutant.ts';
import { counter, hiding, offersOf, showing, showingRegions } from './deviate-offers.ts';

const AVAILABILITY = 'GET /availability';

const listMutants: readonly Mutant[] = [
  {
    id: 'drained-region-is-404',
    breaks: 'GET /availability answers 200 with a list.',
    reddens: ['AVL-LIST-001'],
    behave: onAnswers([AVAILABILITY], (_answer, { query }) =>
      query.get('region') === 'ap-south' ? refusal(404, 'not_found') : undefined,
    ),
  },
  {
    id: 'availability-lists-all',
    breaks: '/availability returns only offers with available: true.',
    reddens: ['AVL-AGREE-001', 'AVL-TRUE-001'],
    behave: onRule('isInAvailability', (usual) => (usual ? undefined : true)),
  },
  {
    id: 'offer-sold-and-not-displayed',
    breaks: '/configurations returns every offer the provider knows.',
    reddens: ['AVL-SUBSET-001'],
    behave: hiding(({ id }) => id === 'cpu-spot'),
  },
  {
    id: 'available-and-not-listed',
    breaks: '/availability reflects real-time inventory.',
    reddens: ['AVL-AGREE-001'],
    behave: onRule('isInAvailability', (_usual, { id }) => (id === 'cpu-spot' ? false : undefined)),
  },
  {
    id: 'availability-is-empty-now-and-then',
    breaks: '/availability reflects real-time inventory.',
    reddens: ['AVL-EMPTY-001'],
    alsoIn: ['create'],
    behave: (rules, hit, clock) => {
      const count = counter();
      return onAnswers([AVAILABILITY], (answer, { query }) =>
        answer.status === 200 && !query.has('region') && count() % 4 === 2
          ? withFields(answer, { configurations: [] })
          : undefined,
      )(rules, hit, clock);
    },
  },
  {
    id: 'memory-in-two-units',
    breaks: 'An offer is the same in both lists.',
    reddens: ['AVL-SAME-001'],
    behave: showing('gpu-l4', () => ({ memory_gb: 29.8 }), 'availability'),
  },
  {
    id: 'the-cheapest-is-a-phantom',
    breaks: '/availability is the deploy-time gate: what it lists can be deployed.',
    reddens: ['AVL-GATE-001', 'REG-BUY-001'],
    behave: (rules, hit) => ({
      ...rules,
      claimCapacity(offer, region) {
        if (offer.id !== 'cpu-small' || region !== 'eu-north') return rules.claimCapacity(offer, region);
        hit();
        return false;
      },
    }),
  },
  {
    id: 'a-second-region-sells-nothing',
    breaks: 'What /availability lists can be deployed.',
    reddens: ['REG-BUY-001'],
    behave: onRule('claimCapacity', (usual, _offer, region) =>
      usual && region === 'us-east' ? false : undefined,
    ),
  },
  {
    id: 'region-filter-ignored',
    breaks: 'region filters.',
    reddens: ['AVL-REGION-001', 'AVL-REGION-002', 'AVL-REGION-004', 'INS-LIST-002'],
    behave: onRule('matchesRegion', (usual) => (usual ? undefined : true)),
  },
  {
    id: 'region-filter-in-another-case',
    breaks: 'region filters.',
    reddens: ['AVL-REALTIME-002', 'AVL-REGION-003', 'AVL-REGION-004'],
    behave: onAnswers([AVAILABILITY], (answer, { query }) =>
      query.has('region') && offersOf(answer).length > 0
        ? withFields(answer, { configurations: [] })
        : undefined,
    ),
  },
];

const regionMutants: readonly Mutant[] = [
  {
    id: 'region-is-a-uuid',
    breaks: 'Region identifiers are human-readable tokens.',
    reddens: ['REG-TOKEN-001'],
    behave: showingRegions('metal-epyc', 'configurations', (regions) => [
      ...regions,
      '0f8fad5b-d9cb-469f-a165-70867728950e',
    ]),
  },
  {
    id: 'region-with-a-number-of-its-own',
    breaks: 'Region identifiers are stable.',
    reddens: ['REG-STABLE-001'],
    behave: (rules, hit, clock) => {
      const count = counter();
      const change = showingRegions('metal-epyc', 'configurations', (regions) => [
        ...regions,
        `hall-${count()}`,
      ]);
      return change(rules, hit, clock);
    },
  },
  {
    id: 'availability-in-datacenter-codes',
    breaks: 'Region identifiers are identical across the lists.',
    reddens: ['AVL-REGION-004', 'REG-SAME-001'],
    behave: showingRegions('gpu-l4', 'availability', (regions) => [...regions, 'dc-arn3']),
  },
  {
    id: 'location-of-the-storage-system',
    breaks: 'The id of a location equals the matching entry in Configuration.regions.',
    reddens: ['REG-VOL-001'],
    behave: onAnswers(['GET /volumes/locations'], (answer) => {
      const { locations = [] } = answer.json as { locations?: unknown[] };
      return withFields(answer, { locations: [...locations, { id: 'ceph-pool-2', name: 'Pool 2' }] });
    }),
  },
  {
    id: 'instance-in-a-datacenter-code',
    breaks: 'Region identifiers are identical in /instances.',
    reddens: ['INS-CREATE-004', 'INS-LIST-002', 'REG-INS-001'],
    behave: onRule('showInstance', (shown, { status }) =>
      status === 'ONLINE' ? { ...shown, region: 'dc-arn3' } : undefined,
    ),
  },
];

/** Faults in availability and regions. */
export const availabilityMutants: readonly Mutant[] = [...listMutants, ...regionMutants];
