import { FileError } from './guest.ts';

export interface MessageEnd {
  postMessage(message: unknown): void;
  on(event: 'message', listener: (message: unknown) => void): unknown;
}

export type Handlers = Record<string, (...args: never[]) => unknown>;

type Message =
  | { kind: 'call'; id: number; method: string; args: unknown[] }
  | { kind: 'value'; id: number; value: unknown }
  | { kind: 'failure'; id: number; isFileError: boolean; message: string };

interface Pending {
  resolve(value: unknown): void;
  reject(error: Error): void;
}

/**
 * Calls between two threads, in both directions. A {@link FileError} keeps its class; other errors keep only their
 * message.
 */
export class ThreadCalls {
  readonly #end: MessageEnd;
  readonly #handlers: Handlers;
  readonly #pending = new Map<number, Pending>();
  #nextId = 1;
  #failure: Error | undefined;

  constructor(end: MessageEnd, handlers: Handlers) {
    this.#end = end;
    this.#handlers = handlers;
    end.on('message', (message) => this.#receive(message as Message));
  }

  call<T>(method: string, ...args: unknown[]): Promise<T> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    const id = this.#nextId++;
    return new Promise<T>((resolve, reject) => {
      this.#pending.set(id, { resolve: resolve as Pending['resolve'], reject });
      this.#end.postMessage({ kind: 'call', id, method, args } satisfies Message);
    });
  }

  /** The other end is gone: fails all open calls and all later ones. */
  fail(error: Error): void {
    this.#failure = error;
    for (const { reject } of this.#pending.values()) reject(error);
    this.#pending.clear();
  }

  #receive(message: Message): void {
    if (message.kind === 'call') {
      void this.#answer(message.id, message.method, message.args);
      return;
    }
    const pending = this.#pending.get(message.id);
    this.#pending.delete(message.id);
    if (message.kind === 'value') pending?.resolve(message.value);
    else pending?.reject(message.isFileError ? new FileError(message.message) : new Error(message.message));
  }

  async #answer(id: number, method: string, args: unknown[]): Promise<void> {
    try {
      const value = await this.#handlers[method]?.(...(args as never[]));
      this.#end.postMessage({ kind: 'value', id, value } satisfies Message);
    } catch (error) {
      const { message } = error as Error;
      const isFileError = error instanceof FileError;
      this.#end.postMessage({ kind: 'failure', id, isFileError, message } satisfies Message);
    }
  }
}
