export declare const languages: Record<string, unknown>;
