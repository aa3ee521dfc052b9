/**
 * Opens a store once for many tests, and again after one of them has closed it: its connections take longer than what a
 * test asks of it.
 */
export function reusable<S extends { close(): Promise<void> }>(open: () => Promise<S>) {
  let opened: S | undefined;
  return {
    get: async (): Promise<S> => {
      opened ??= await open();
      const { close, ...rest } = opened;
      return {
        ...rest,
        close: async () => {
          opened = undefined;
          await close();
        },
      } as S;
    },
    close: async (): Promise<void> => opened?.close(),
  };
}
