import { checkedArming } from '../../src/sandbox/faults/arming.ts';
import type { FaultName } from '../../src/sandbox/faults/catalog/catalog.ts';
import { type ScenarioInput, scenarioSchema } from '../../src/sandbox/state/scenario-format.ts';
import type { Happening } from '../kernel/journal.ts';
import { toRepro } from '../runner/report.ts';
import type { Outcome } from '../runner/run-world.ts';
import type { EngineName, Subject } from '../runner/subject.ts';
import { marketplace } from './marketplace.ts';
import { orchestrator } from './orchestrator.ts';
import type { Of, Step, Translation } from './translation.ts';

/** A sandbox has no engine below its providers. */
type Exported = Exclude<Subject, EngineName>;

const translations: Record<Exported, Translation> = {
  orchestrator,
  platforms: orchestrator,
  hosts: orchestrator,
  marketplace,
};

/** What a sandbox has no like of. */
const unlike: Record<string, string> = {
  crash: 'a server dies and starts again',
  powerCut: 'all servers lose their power',
  pause: 'a server stands still for a while',
  partition: 'a server hears of no commits',
  clockJump: 'the clock of a server jumps',
  wrongPlatform: 'a server is configured for another platform',
  cordon: 'the platform has fewer or more units',
  silentHost: 'a host of the platform falls silent',
  unconfiguredHost: 'a host of the platform leaves the configuration',
  movedByHand: 'a machine is moved to another host by hand',
  operatorCordon: 'an operator sets or takes back a cordon',
  move: 'a machine gets another address',
  blink: 'an instance reads another status for a while',
  reprice: 'a price changes',
  volumeBreak: 'a volume breaks',
  credit: 'the operator books a credit',
  discount: 'the operator changes a discount',
};
/** The drawn keys of the simulation are as good as any. */
const ALWAYS = [
  'several servers on one database: a sandbox has one for each provider, which does not die',
  'answers that are lost on their way to a client, and requests with an Idempotency-Key that are repeated',
  'the exact moments of calls to the platform: a fault strikes the next call of its kind',
];

/** What a provider of a sandbox, which has one platform, does instead. */
const ofSubject: Partial<Record<Exported, string>> = {
  platforms:
    'two platforms of one orchestrator: the provider has one, where all is made, and which has the faults of both',
  hosts: 'several hosts of one platform: the provider has no hosts that fall silent or move',
};

/** The run of a simulation as a scenario: its requests and its faults, at their times. `mutant`: the planted fault. */
export function toScenario(outcome: Outcome, subject: Exported, mutant?: string): ScenarioInput {
  const { seed, failure, happenings } = outcome;
  const translation = translations[subject];
  const names = new Names(outcome);
  const left = new Map<string, number>();
  const steps: Step[] = [...translation.begin];
  let at = 0;
  for (const happening of happenings) {
    const step = toStep(happening, translation, names, left);
    if (step === undefined) continue;
    if (happening.at > at) steps.push({ do: 'advance', by: happening.at - at });
    at = Math.max(at, happening.at);
    steps.push(step);
  }
  const scenario: ScenarioInput = {
    name: `${subject}-seed-${seed}`,
    description: [
      failure?.message.split('\n')[0] ?? 'every invariant held',
      toRepro(outcome, { subject, mutant }),
    ].join('; '),
    sandbox: { ...translation.sandbox, seed },
    steps,
    not_reproduced: [
      ...[...left].map(([what, count]) => `${count} × ${what}`),
      ...ALWAYS,
      ...[ofSubject[subject]].filter((what) => what !== undefined),
    ],
  };
  scenarioSchema.parse(scenario);
  return scenario;
}

function toStep(
  happening: Happening,
  translation: Translation,
  names: Names,
  left: Map<string, number>,
): Step | undefined {
  const leave = (what: string): undefined => void left.set(what, (left.get(what) ?? 0) + 1);
  if (happening.kind === 'request')
    return toRequest(happening, translation, names) ?? leave('a repeated create');
  const arming = happening.kind === 'call' ? translation.call(happening) : translation.event(happening);
  if (arming === 'nothing') return undefined;
  if (arming === undefined)
    return leave(
      happening.kind === 'call'
        ? `${happening.method} of the platform or provider meets ${happening.fault}`
        : (unlike[happening.name] ?? happening.name),
    );
  const on = happening.ref === undefined ? undefined : names.ofRef(happening.ref);
  const isVolume = on?.startsWith('volume') === true;
  const fault = { ...arming, ...(on !== undefined && { [isVolume ? 'volume' : 'instance']: on }) };
  const { fault: name, ...options } = fault;
  checkedArming(name as FaultName, options);
  return {
    do: 'arm',
    fault: fault as Extract<Step, { do: 'arm' }>['fault'],
    ...(on !== undefined && { if_made: true }),
  };
}

function toRequest(
  { who, method, path, body, id }: Of<'request'>,
  { provider, account, body: toBody }: Translation,
  names: Names,
): Step | undefined {
  const as = method === 'POST' && body !== undefined ? names.ofCreate(path, body, id) : undefined;
  if (as === 'again') return undefined;
  return {
    do: 'request',
    provider,
    account: account(who),
    method: method as 'POST',
    path: names.inText(path),
    ...(body !== undefined && { body: names.inBody(toBody(body as Record<string, unknown>)) }),
    ...(as === undefined ? { if_made: true } : { as, if_made: true }),
  };
}

/** Gives what is made names that steps can use. */
class Names {
  readonly #resources: Outcome['resources'];
  readonly #byId = new Map<string, string>();
  readonly #counts = new Map<string, number>();
  readonly #asked = new Set<string>();

  constructor({ resources }: Outcome) {
    this.#resources = resources;
  }

  /** The name of what a create makes; undefined: it is no create; `again`: it was asked for before. */
  ofCreate(path: string, body: object, id: string | undefined): string | 'again' | undefined {
    const kind = /\/(instance|deployment|volume)s$/.exec(path)?.[1];
    if (kind === undefined) return undefined;
    const { name } = body as { name?: string };
    const made = id ?? this.#resources.find((each) => each.name === name && !this.#byId.has(each.id))?.id;
    if (id === undefined && name !== undefined) {
      if (this.#asked.has(`${kind} ${name}`)) return 'again';
      this.#asked.add(`${kind} ${name}`);
    }
    const count = (this.#counts.get(kind) ?? 0) + 1;
    this.#counts.set(kind, count);
    const label = `${kind}-${count}`;
    if (made !== undefined) this.#byId.set(made, label);
    return label;
  }

  ofRef(ref: string): string | undefined {
    const id = this.#resources.find((each) => each.ref === ref)?.id;
    return id === undefined ? undefined : this.#byId.get(id);
  }

  inText(text: string): string {
    return text
      .split('/')
      .map((part) => this.#inPart(part))
      .join('/');
  }

  inBody(body: Record<string, unknown>): Record<string, unknown> {
    return JSON.parse(JSON.stringify(body), (_, value: unknown) =>
      typeof value === 'string' ? this.#inPart(value) : value,
    );
  }

  #inPart(part: string): string {
    const label = this.#byId.get(part);
    return label === undefined ? part : `{${label}}`;
  }
}
