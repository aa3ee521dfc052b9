/** Which methods the paths of an OpenAPI document answer to. */
export class AllowedMethods {
  readonly #paths: { pattern: RegExp; methods: string[] }[];

  /** `prefix` is what the document's paths are under. */
  constructor({ paths = {} }: { paths?: Record<string, object> }, prefix = '') {
    this.#paths = Object.entries(paths).map(([path, operations]) => ({
      pattern: new RegExp(`^${prefix}${path.replace(/\{[^}]+\}/g, '[^/]+')}$`),
      methods: Object.keys(operations).flatMap((method) =>
        method === 'get' ? ['GET', 'HEAD'] : [method.toUpperCase()],
      ),
    }));
  }

  /** Empty: there is no such path. */
  of(path: string): string[] {
    return [
      ...new Set(this.#paths.filter(({ pattern }) => pattern.test(path)).flatMap((entry) => entry.methods)),
    ];
  }
}
