import { aroundMethods } from '../../ports/around-methods.ts';

/** Returns the repository with the errors of its methods translated. */
export function withErrors<Repository extends object>(
  repository: Repository,
  translate: (error: unknown) => unknown,
): Repository {
  return aroundMethods(repository, (call) => call().catch((error) => Promise.reject(translate(error))));
}
