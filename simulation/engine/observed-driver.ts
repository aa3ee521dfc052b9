import { aroundCalls } from '../../src/drivers/kit/around-calls.ts';
import type {
  Listing,
  OwnerRef,
  PlatformDriver,
  Step,
} from '../../src/orchestrator/model/platform-driver.ts';
import type { ServerProcess } from '../kernel/process.ts';

/** A call of a server that changes something, from its begin until nothing of it runs any more. */
export interface UnderWay {
  process: ServerProcess;
  method: string;
  /** The attempt of the resource whose lease it has. */
  ref: OwnerRef;
  beganAt: number;
}

export interface CallObserver {
  began(process: ServerProcess, method: string, ref: OwnerRef): UnderWay;
  ended(call: UnderWay, outcome: string): void;
  /** What a listing showed of ours. */
  listed(process: ServerProcess, refs: readonly OwnerRef[]): void;
  /** What marks of its writer the platform has, after the process has read or written it. */
  marked(process: ServerProcess, texts: readonly string[], isWritten: boolean): void;
}

/** The same driver, whose calls the observer is told of. */
export function observedDriver(
  { writer, ...driver }: PlatformDriver,
  process: ServerProcess,
  observer: CallObserver,
): PlatformDriver {
  const call = async (method: string, ref: OwnerRef, run: () => unknown): Promise<unknown> => {
    const underWay = observer.began(process, method, ref);
    let outcome = 'rejected';
    try {
      const step = (await run()) as Step<unknown>;
      outcome = step.outcome === 'failed' ? `failed ${step.code} (${step.detail})` : step.outcome;
      return step;
    } finally {
      observer.ended(underWay, outcome);
    }
  };
  const list = async (run: () => unknown): Promise<unknown> => {
    const listing = (await run()) as Listing<{ ref: OwnerRef }>;
    if (listing.answer === 'listed')
      observer.listed(
        process,
        listing.items.map(({ ref }) => ref),
      );
    return listing;
  };
  const observed = aroundCalls(driver, ({ name, args, limitsAt }, run) => {
    if (name === 'list' || name === 'volumes.list') return list(() => run(args));
    if (limitsAt === undefined || name === 'disown') return run(args);
    const [first] = args as [OwnerRef | { ref: OwnerRef }];
    return call(name, typeof first === 'string' ? first : first.ref, () => run(args));
  });
  return {
    ...observed,
    ...(writer !== undefined && {
      writer: {
        async read(key) {
          const texts = await writer.read(key);
          observer.marked(process, texts, false);
          return texts;
        },
        async write(key, text) {
          await writer.write(key, text);
          observer.marked(process, [text], true);
        },
      },
    }),
  };
}
