import { setMaxListeners } from 'node:events';
import { ApiError } from '../../contract/errors.ts';
import { orAborted } from '../../sandbox/clock.ts';
import { createControlClient } from '../../sandbox/control/client.ts';
import type { ArmedFault, Arming } from '../../sandbox/faults/arming.ts';
import { ORIGIN, type Sandbox, type TestOptions } from '../../sandbox/sandbox.ts';

/**
 * The sandbox as one test uses it. `close()` ends what the test armed, set and created, and rejects if a fault that had to
 * strike did not.
 */
export function forTest(shared: Sandbox, { signal, mustStrike = true }: TestOptions = {}): Sandbox {
  const ending = new AbortController();
  const over = signal === undefined ? ending.signal : AbortSignal.any([signal, ending.signal]);
  setMaxListeners(0, over);
  const armed = new Set<ArmedFault>();
  const undo: (() => unknown)[] = [];
  /** What is made after the end, by a call that was already under way, is undone at once. */
  const atEnd = (step: () => unknown): void => void (ending.signal.aborted ? step() : undo.push(step));
  /** Runs `work` unless the test is over, and rejects when it is. `made` tells how to undo it. */
  const within = async <T>(
    work: () => Promise<T>,
    made: (result: T) => void = () => undefined,
  ): Promise<T> => {
    over.throwIfAborted();
    const working = work();
    working.then(made, () => undefined);
    return orAborted(working, over);
  };
  const noteArmed = (fault: ArmedFault | undefined): void => {
    if (fault === undefined) return;
    armed.add(fault);
    atEnd(() => fault.disarm());
  };
  const noteAccount = ({ name }: { name: string }): void =>
    atEnd(() => shared.endAccount(name).catch(unlessGone));
  const withMustStrike = <O extends Pick<Arming, 'must_strike' | 'probability'>>(options: O): O => ({
    ...options,
    must_strike: options.must_strike ?? (mustStrike && options.probability === undefined),
  });
  const orOver = (own: AbortSignal | null | undefined): AbortSignal =>
    own == null ? over : AbortSignal.any([own, over]);
  const ask: Sandbox['fetch'] = (input, init) => {
    const own = init?.signal ?? (input instanceof Request ? input.signal : undefined);
    return within(() => shared.fetch(input, { ...init, signal: orOver(own) }));
  };
  const control = createControlClient({ baseUrl: ORIGIN, key: shared.controlKey, fetch: ask });
  const { clock, faults, transitions } = shared;
  const setTransitions: Sandbox['transitions']['set'] = (setting) => {
    over.throwIfAborted();
    const set = transitions.set(setting);
    atEnd(() => transitions.unset(set));
    return set;
  };
  const close = async (): Promise<void> => {
    ending.abort(new Error('The test has ended.'));
    for (const step of undo.splice(0).reverse()) await step();
    const unstruck = [...armed].filter(({ isUnstruck }) => isUnstruck);
    armed.clear();
    if (unstruck.length > 0 && signal?.aborted !== true) throw new Error(neverStruck(unstruck));
  };
  return {
    ...shared,
    clock: withMembers(clock, {
      advance: (ms, options) => within(() => clock.advance(ms, { signal: orOver(options?.signal) })),
      advanceUntilIdle: (options) =>
        within(() => clock.advanceUntilIdle({ ...options, signal: orOver(options?.signal) })),
      during: (work) => within(() => clock.during(work)),
      freeze: () => {
        over.throwIfAborted();
        clock.freeze();
        atEnd(() => clock.resume());
      },
    }),
    faults: withMembers(faults, {
      arm: (name, options, ...rest) =>
        within(
          () => faults.arm(name, withMustStrike({ ...options } as NonNullable<typeof options>), ...rest),
          noteArmed,
        ),
    }),
    transitions: withMembers(transitions, { set: setTransitions }),
    control: {
      ...control,
      createAccount: (name) => within(() => control.createAccount(name), noteAccount),
      faults: {
        ...control.faults,
        arm: (name, options) =>
          within(
            () => control.faults.arm(name, withMustStrike({ ...options } as NonNullable<typeof options>)),
            ({ id }) => noteArmed(faults.get(id)),
          ),
      },
      transitions: {
        ...control.transitions,
        set: async (setting) => {
          setTransitions(setting);
          return control.transitions.show();
        },
      },
    },
    fetch: ask,
    verdict: control.verdict,
    account: (name) => within(() => shared.account(name), noteAccount),
    forTest: (options) => forTest(shared, { ...options, signal: orOver(options?.signal) }),
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** A reset has ended the account already. */
function unlessGone(error: unknown): void {
  if (!(error instanceof ApiError && error.code === 'not_found')) throw error;
}

/** The object with some members replaced. The others act on the object itself. */
function withMembers<T extends object>(target: T, replaced: Partial<T>): T {
  return new Proxy(target, {
    get(_target, name) {
      const value: unknown = Reflect.get(Object.hasOwn(replaced, name) ? replaced : target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

function neverStruck(unstruck: readonly ArmedFault[]): string {
  const lines = unstruck.map((fault) => {
    const { fault: name, options, seen } = fault.toJSON();
    const { must_strike: _must, ...scope } = options;
    return `  ${name} ${JSON.stringify(scope)}, after ${seen} occasions`;
  });
  return `The test armed faults that never struck (must_strike: false allows that):\n${lines.join('\n')}`;
}
