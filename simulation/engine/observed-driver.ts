import type {
  Listing,
  OwnerRef,
  PlatformDriver,
  Step,
  VolumeDriver,
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
  driver: PlatformDriver,
  process: ServerProcess,
  observer: CallObserver,
): PlatformDriver {
  const call = async <T>(method: string, ref: OwnerRef, run: () => Promise<Step<T>>): Promise<Step<T>> => {
    const underWay = observer.began(process, method, ref);
    let outcome = 'rejected';
    try {
      const step = await run();
      outcome = step.outcome === 'failed' ? `failed ${step.code} (${step.detail})` : step.outcome;
      return step;
    } finally {
      observer.ended(underWay, outcome);
    }
  };
  const list = async <T extends { ref: OwnerRef }>(run: () => Promise<Listing<T>>): Promise<Listing<T>> => {
    const listing = await run();
    if (listing.answer === 'listed')
      observer.listed(
        process,
        listing.items.map(({ ref }) => ref),
      );
    return listing;
  };
  const { volumes, writer } = driver;
  return {
    ...driver,
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
    list: () => list(() => driver.list()),
    create: (spec, ...rest) => call('create', spec.ref, () => driver.create(spec, ...rest)),
    stop: (ref, ...rest) => call('stop', ref, () => driver.stop(ref, ...rest)),
    start: (ref, ...rest) => call('start', ref, () => driver.start(ref, ...rest)),
    restart: (ref, ...rest) => call('restart', ref, () => driver.restart(ref, ...rest)),
    destroy: (ref, ...rest) => call('destroy', ref, () => driver.destroy(ref, ...rest)),
    ...(volumes !== undefined && { volumes: observedVolumes(volumes, { call, list }) }),
  };
}

function observedVolumes(
  volumes: VolumeDriver,
  {
    call,
    list,
  }: {
    call: <T>(method: string, ref: OwnerRef, run: () => Promise<Step<T>>) => Promise<Step<T>>;
    list: <T extends { ref: OwnerRef }>(run: () => Promise<Listing<T>>) => Promise<Listing<T>>;
  },
): VolumeDriver {
  const { copy } = volumes;
  return {
    ...volumes,
    list: () => list(() => volumes.list()),
    create: (spec, ...rest) => call('volumes.create', spec.ref, () => volumes.create(spec, ...rest)),
    attach: (ref, ...rest) => call('volumes.attach', ref, () => volumes.attach(ref, ...rest)),
    detach: (ref, ...rest) => call('volumes.detach', ref, () => volumes.detach(ref, ...rest)),
    resize: (ref, ...rest) => call('volumes.resize', ref, () => volumes.resize(ref, ...rest)),
    destroy: (ref, ...rest) => call('volumes.destroy', ref, () => volumes.destroy(ref, ...rest)),
    ...(copy !== undefined && {
      copy: (ref, ...rest) => call('volumes.copy', ref, () => copy.call(volumes, ref, ...rest)),
    }),
  };
}
