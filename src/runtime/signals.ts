/** npm forwards a signal that the terminal has already sent to its script: both arrive within milliseconds. */
const ECHO_MS = 500;

const ENDING = ['SIGINT', 'SIGTERM'] as const;

type Listener = (cause: unknown) => void;

/** The events of the process. */
export interface SignalSource {
  on(event: string, listener: Listener): unknown;
  off(event: string, listener: Listener): unknown;
}

/** Wraps the source: a signal that is repeated within half a second is delivered once. */
export function withoutEchoes(source: SignalSource, now = () => performance.now()): SignalSource {
  const wrapped = new Map<string, Map<Listener, Listener>>();
  return {
    on(event, listener) {
      let heardAt = Number.NEGATIVE_INFINITY;
      const handle = (cause: unknown): void => {
        if (event.startsWith('SIG') && now() - heardAt < ECHO_MS) return;
        heardAt = now();
        listener(cause);
      };
      wrapped.set(event, (wrapped.get(event) ?? new Map()).set(listener, handle));
      source.on(event, handle);
    },
    off(event, listener) {
      source.off(event, wrapped.get(event)?.get(listener) ?? listener);
      wrapped.get(event)?.delete(listener);
    },
  };
}

/** Calls `listener` at the first signal that asks the process to end; the next one has its usual effect. */
export function onFirstSignal(
  listener: () => void,
  signals = withoutEchoes(process),
  end = (signal: NodeJS.Signals): void => void process.kill(process.pid, signal),
): void {
  let isFirst = true;
  const handle = (signal: unknown): void => {
    if (isFirst) {
      isFirst = false;
      listener();
      return;
    }
    for (const name of ENDING) signals.off(name, handle);
    end(signal as NodeJS.Signals);
  };
  for (const name of ENDING) signals.on(name, handle);
}
