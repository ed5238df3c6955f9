// A store that tells what it is asked and what it answers, in the order of the answers.

export interface Overheard {
  /** With the arguments that are data. */
  readonly asked: string;
  readonly told: string;
}

export function overhear<S extends object>(store: S, hear: (one: Overheard) => void): S {
  return hearing(store, "", hear);
}

/** Its parts, such as the grants, are heard too. */
function hearing<T extends object>(part: T, name: string, hear: (one: Overheard) => void): T {
  return new Proxy(part, {
    get(_, member) {
      const value: unknown = Reflect.get(part, member);
      const called = `${name}${String(member)}`;
      if (typeof value === "object" && value !== null) return hearing(value, `${called}.`, hear);
      if (typeof value !== "function") return value;
      return (...args: readonly unknown[]): unknown => {
        const asked = `${called} ${JSON.stringify(args)}`;
        const answer: unknown = Reflect.apply(value, part, args);
        if (answer instanceof Promise)
          answer.then(
            (told: unknown) => hear({ asked, told: String(JSON.stringify(told)) }),
            (error: unknown) => hear({ asked, told: String(error) }),
          );
        else hear({ asked, told: String(JSON.stringify(answer)) });
        return answer;
      };
    },
  });
}
