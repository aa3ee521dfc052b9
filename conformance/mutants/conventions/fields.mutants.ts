import { isShown, onAnswers, onRule, withFields } from '../deviate.ts';
import type { Mutant } from '../mutant.ts';

const LIST = 'GET /instances';

/** Faults in the fields of instances and volumes, and in their lists. */
export const fieldMutants: readonly Mutant[] = [
  {
    id: 'empty-list-is-null',
    breaks: 'GET /instances answers { instances: [] }.',
    reddens: ['INS-LIST-001'],
    behave: onAnswers([LIST], (answer) => {
      const { instances = [] } = answer.json as { instances?: unknown[] };
      return isShown(answer) && instances.length === 0 ? withFields(answer, { instances: null }) : undefined;
    }),
  },
  {
    id: 'delete-without-the-times',
    breaks: 'DELETE answers with the whole Instance.',
    reddens: ['INS-FIELD-001'],
    behave: onAnswers(['DELETE /instances/{instanceId}'], (answer) =>
      isShown(answer) ? withFields(answer, { updated_at: undefined }) : undefined,
    ),
  },
  {
    id: 'private-ip-is-null',
    breaks: 'An optional field without a value is left out.',
    reddens: ['INS-NULL-001'],
    behave: onRule('showInstance', (shown) => ({ ...shown, private_ip: null })),
  },
  {
    id: 'status-of-the-platform-in-a-stop',
    breaks: 'Internal platform states are mapped onto the eight.',
    reddens: ['INS-FIELD-003', 'STOP-200-001', 'TRACE-PATH-001'],
    behave: onAnswers(['POST /instances/{instanceId}/stop'], (answer) =>
      isShown(answer) ? withFields(answer, { status: 'POWERING_OFF' }) : undefined,
    ),
  },
  {
    id: 'forwarded-ports-as-text',
    breaks: 'internal_port and external_port are integers.',
    reddens: ['INS-FIELD-004'],
    behave: onRule('showInstance', (shown) =>
      shown['port_forwards'] === undefined
        ? undefined
        : { ...shown, port_forwards: [{ internal_port: '22', external_port: String(shown['ssh_port']) }] },
    ),
  },
  {
    id: 'ssh-port-as-text',
    breaks: 'ssh_port is an integer.',
    reddens: ['INS-FIELD-002'],
    behave: onRule('showInstance', (shown, { status }) =>
      status === 'PROVISIONING' ? { ...shown, ssh_port: '22' } : undefined,
    ),
  },
  {
    id: 'instance-for-a-placeholder',
    breaks: 'Prices are USD per hour.',
    reddens: ['INS-PRICE-002'],
    behave: onRule('showInstance', (shown) => ({ ...shown, price_per_hour: -1 })),
  },
  {
    id: 'instance-ten-percent-dearer',
    breaks: 'price_per_hour is the current effective price.',
    reddens: ['INS-PRICE-003'],
    behave: onRule('pricePerHour', (usual) => usual * 1.1),
  },
  {
    id: 'instance-of-another-size',
    breaks: 'configuration_id is the offer that the instance was deployed from.',
    reddens: ['INS-OFFER-001'],
    behave: onRule('showInstance', (shown) => ({ ...shown, vcpus: 1, gpu_count: 99 })),
  },
  {
    id: 'price-rises-with-the-catalogue',
    breaks: 'Only dynamically priced instances have another price while they live.',
    reddens: ['INS-PRICE-004'],
    alsoIn: ['observe', 'elsewhere', 'elsewhere-end'],
    behave: (rules, hit, clock) => {
      const rise = (): number => (clock.now() > 20_000 ? 1.01 : 1);
      return {
        ...rules,
        pricePerHour(instance) {
          if (rise() > 1) hit();
          return rules.pricePerHour(instance) * rise();
        },
        showOffer: (offer, shown, list) =>
          rules.showOffer(offer, { ...shown, price_per_hour: offer.pricePerHour * rise() }, list),
      };
    },
  },
  {
    id: 'memory-in-megabytes',
    breaks: 'Memory is in GB.',
    reddens: ['INS-OFFER-001', 'INS-UNIT-001'],
    behave: onRule('showInstance', (shown, { offer }) => ({ ...shown, memory_gb: offer.memoryGb * 1024 })),
  },
  {
    id: 'price-of-a-minute',
    breaks: 'Prices are USD per hour.',
    reddens: ['INS-PRICE-003', 'INS-UNIT-002'],
    behave: onRule('pricePerHour', (usual) => usual / 60),
  },
  {
    id: 'volume-for-a-placeholder',
    breaks: 'Prices are USD per hour.',
    reddens: ['VOL-PRICE-002'],
    behave: onRule('showVolume', (shown) => ({ ...shown, price_per_hour: -1 })),
  },
  {
    id: 'volume-created-in-seconds',
    breaks: 'created_at of a volume is a string.',
    reddens: ['VOL-FIELDS-001'],
    behave: onRule('showVolume', (shown) => ({
      ...shown,
      created_at: Date.parse(String(shown['created_at'])) / 1000,
    })),
  },
];
